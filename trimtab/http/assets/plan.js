// The newest plan: what it comes to, its first actions with their reasons, the rest on demand, and what may be said to it.

import { ago, at, badge, count, fill, fresh, make, percent, size, whole } from "./dom.js";
import { json } from "./api.js";
import { Table } from "./table.js";

const PAGE = 10;
const TONES = { proposed: "some", approved: "some", running: "some", done: "good", failed: "bad" };
const FORMS = [["html", "HTML report"], ["markdown", "Markdown"], ["text", "text"], ["json", "plan file (JSON)"], ["reassignment", "for kafka-reassign-partitions.sh"], ["election", "for kafka-leader-election.sh"]];
const open = (plan) => plan && ["proposed", "approved", "running"].includes(plan.state);

export class PlanPart {
  constructor({ approve, reject, mayChange, onGoals }) {
    Object.assign(this, { approve, reject, mayChange, onGoals });
    this.loaded = null;
    this.table = new Table(at("plan-actions"), {
      name: "actions", page: PAGE, caption: "In the order they are carried out; 0.5 is a neutral score",
      count: () => this.loaded?.reachable ?? 0, more: (n) => this.load(n),
      columns: [
        { key: "seq", title: "#", cell: (a) => whole(a.seq), num: true },
        { key: "type", title: "type", cell: (a) => badge(a.type) },
        { key: "what", title: "partition", head: true, cell: (a) => lines(a, (c) => `${c.topic}-${c.partition}`) },
        { key: "route", title: "brokers", class: () => "route", cell: (a) => lines(a, route) },
        { key: "bytes", title: "data", num: true, cell: (a) => (a.bytes_to_move ? size(a.bytes_to_move) : "–") },
        { key: "score", title: "score", label: "score", num: true, cell: (a) => (a.score === null ? "–" : a.score.toFixed(3)) },
        { key: "reason", title: "reason", class: () => "words", cell: (a) => [a.repairs.length ? [make("span", { class: "badge bad", title: `repairs ${a.repairs.join(", ")}` }, "repair"), " "] : null, a.reason] },
      ],
    });
  }

  // Goals after the plan, where it is not over.
  goals() { return this.loaded && open(this.plan) ? new Map(this.loaded.goals.map((g) => [g.name, g])) : new Map(); }

  async show(state) {
    this.plan = state.plan;
    const known = this.loaded?.plan_id === state.plan?.plan_id;
    if (!known) this.loaded = null;
    if (fresh("plan", state.plan, state.mode, state.has_executor, this.mayChange(), Boolean(this.loaded))) this.head(state);
    if (!state.plan) { fill(at("plan-actions")); return; }
    if (!known) {
      try { await this.load(PAGE); } catch (error) { fill(at("plan-actions"), make("p", { class: "empty" }, `The plan's actions cannot be shown. ${error.message}`)); return; }
      this.table.shown = PAGE;
      this.table.draw();
      this.head(state);
      this.onGoals();
    }
  }

  async load(upto) {
    const plan = this.plan.plan_id, had = this.loaded?.plan_id === plan ? this.loaded.actions : [];
    const found = await json(`/api/v1/plans/${encodeURIComponent(plan)}/actions?offset=${had.length}&limit=${Math.min(500, Math.max(1, upto - had.length))}`);
    if (this.plan?.plan_id !== plan) return;
    this.loaded = { ...found, actions: [...had, ...found.actions] };
    this.table.rows = this.loaded.actions;
  }

  head(state) {
    const plan = state.plan, place = at("plan-head");
    if (!plan) { fill(place, make("p", { class: "empty" }, "There is no plan yet.", state.why_nothing.length ? " Why nothing is happening stands at the top of this page." : "")); return; }
    const least = this.loaded?.lower_bounds, url = `/api/v1/plans/${encodeURIComponent(plan.plan_id)}`;
    const what = [plan.replica_moves && count(plan.replica_moves, "replica move"), plan.leadership_changes && count(plan.leadership_changes, "leadership change")].filter(Boolean);
    const cost = plan.bytes_to_move ? `, ${size(plan.bytes_to_move)} to copy` : ", nothing to copy";
    const waits = plan.state === "proposed";
    fill(place, make("div", { class: "card" },
      make("p", {}, badge(plan.state, TONES[plan.state]), " ", make("b", {}, `${what.join(" and ") || count(plan.actions, "action")}${cost}`),
        ` in ${count(plan.actions, "action")}, made `, ago(plan.made_ms), "."),
      plan.note && make("p", {}, plan.note),
      plan.progress !== null && plan.state === "running" && make("p", {}, make("progress", { max: 1, value: plan.progress, "aria-label": "share carried out" }), ` ${percent(plan.progress, 0)} carried out`),
      least && make("p", { class: "quiet" }, `No plan that brings every broker that can be helped into its target range could use fewer than ${count(least.replica_moves, "replica move")} or ${size(least.bytes_to_move)}.`),
      make("p", { class: "quiet" }, "Plan ", make("code", {}, plan.plan_id), `, decision ${plan.decision_id}`),
      make("p", { class: "forms" }, make("span", { class: "quiet" }, "In full:"), FORMS.map(([form, words]) =>
        make("a", { href: `${url}?format=${form}`, target: "_blank", rel: "noopener", "data-get": true, "data-key": `form-${form}` }, words))),
      waits && make("div", { class: "bar" },
        make("button", { type: "button", class: "main", "data-key": "approve", id: "approve", disabled: !this.mayChange() || state.mode === "dry-run" || !state.has_executor, onclick: () => this.approve(plan) }, "Approve …"),
        make("button", { type: "button", "data-key": "reject", id: "reject", disabled: !this.mayChange(), onclick: () => this.reject(plan) }, "Reject …"),
        whyNot(state) && make("span", { class: "quiet" }, whyNot(state)))));
    const rest = this.loaded && this.loaded.total > this.loaded.reachable;
    if (rest) place.append(make("p", { class: "quiet" }, `The first ${whole(this.loaded.reachable)} of ${whole(this.loaded.total)} actions are to be had below; the plan file has all.`));
  }
}

// Why it cannot be approved, and what to do instead; empty where it can.
function whyNot(state) {
  const none = "this release has no executor for real clusters. Apply the plan by hand with the two files above: first kafka-reassign-partitions.sh --reassignment-json-file FILE --execute, then, when that is done, kafka-leader-election.sh --election-type preferred --path-to-json-file FILE; the next decision sees what has changed.";
  if (state.mode !== "dry-run") return state.has_executor ? "" : `Mode ${state.mode}, but nothing can be approved and nothing is moved: ${none}`;
  return `Dry run: plans are shown and not carried out. ${state.has_executor ? "Set mode to approve or auto in the service's configuration to have them carried out." : `No other mode would change that: ${none}`}`;
}

const lines = (action, words) => make("span", { class: "lines" }, action.changes.map((c) => make("span", {}, words(c))));

function route(c) {
  const gone = c.replicas_before.filter((b) => !c.replicas_after.includes(b)), come = c.replicas_after.filter((b) => !c.replicas_before.includes(b));
  if (gone.length || come.length) return `${gone.join(", ") || "–"} → ${come.join(", ") || "–"}`;
  return `leader ${c.leader_before ?? "–"} → ${c.leader_after ?? "–"}`;
}
