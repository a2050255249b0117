// The newest execution: how far it is, each partition in progress, and what may be said to it.

import { at, badge, count, fill, fresh, make, percent, size, span, whole } from "./dom.js";

const TONES = { running: "some", done: "good", failed: "bad" };
const STAGES = { waiting: "waiting", asked: "asked for", moving: "being copied", placed: "waiting for its leader", done: "done", back: "as before", skipped: "left alone", failed: "failed" };

export function execution(state, acts) {
  const it = state.execution;
  at("execution").hidden = at("execution-link").hidden = !it;
  if (!it || !fresh("execution", it, acts.mayChange(), acts.whyRefused())) return;
  const share = it.bytes_total ? it.bytes_copied / it.bytes_total : it.total ? it.final / it.total : 1;
  const over = it.state !== "running", way = { forward: "", cancel: ", being cancelled", rollback: ", being rolled back" }[it.direction];
  const pace = [it.bytes_total > 0 && `${size(it.bytes_copied)} of ${size(it.bytes_total)} copied`, it.rate && `${size(it.rate)}/s`, it.seconds_left !== null && `about ${span(it.seconds_left * 1000)} left`];
  const said = (verb, title, act, main) => it.can.includes(verb) && make("button", { type: "button", class: main && "main", id: `execution-${verb}`, "data-key": `execution-${verb}`, disabled: !acts.mayChange(), onclick: () => act(it) }, title);
  const why = it.why_not || acts.whyRefused();
  fill(at("execution-body"), make("div", { class: "card" },
    make("p", {}, badge(over ? it.state : `${it.state}${way}`, TONES[it.state]), " ",
      make("b", {}, `${whole(it.final)} of ${count(it.total, "partition")} done`), it.batches > 0 && !over && `, batch ${whole(it.batch)} of ${whole(it.batches)}`, `, by ${it.here ? "this instance" : it.instance}`),
    !over && make("p", {}, make("progress", { max: 1, value: share, "aria-label": "share copied" }), ` ${percent(share, 0)}`),
    make("p", {}, pace.filter(Boolean).join(", ")),
    it.paused && make("p", {}, `Paused by ${it.paused}.`),
    it.waits && make("p", { class: "help" }, it.waits),
    it.why && make("p", {}, it.why),
    it.throttle !== null && !over && make("p", { class: "quiet" }, `Throttle ${size(it.throttle)}/s${it.throttle_why ? `: ${it.throttle_why}` : ""}`),
    over && it.throttles_left > 0 && make("p", { class: "fault" }, `${count(it.throttles_left, "setting")} of throttles cannot be taken off yet; it is tried again.`),
    it.unchanged > 0 && make("p", {}, `${count(it.unchanged, "partition")} ${it.unchanged === 1 ? "was" : "were"} not changed as planned; the list has the reasons.`),
    make("p", { class: "quiet" }, Object.entries(it.counts).map(([stage, n]) => `${whole(n)} ${STAGES[stage] ?? stage}`).join(", ")),
    make("p", { class: "quiet" }, "Plan ", make("code", {}, it.plan_id), " · ", make("a", { href: "/api/v1/execution", target: "_blank", rel: "noopener", "data-get": true, "data-key": "execution-all" }, "every partition (JSON)")),
    make("div", { class: "bar" },
      said("resume", "Resume …", acts.resume, true), said("pause", "Pause …", acts.pause), said("cancel", "Cancel …", acts.cancel),
      it.can.includes("cancel") && make("button", { type: "button", id: "execution-finish", "data-key": "execution-finish", disabled: !acts.mayChange(), onclick: () => acts.finish(it) }, "Finish what is in progress …"),
      said("rollback", "Roll back …", acts.rollback), why && make("span", { class: "quiet" }, why))),
  it.moving.length > 0 && moving(it));
}

function moving(it) {
  const head = ["partition", "to brokers", "copied", "of", "rate", "left"];
  const rows = it.moving.map((p) => make("tr", {},
    make("th", { scope: "row" }, `${p.topic}-${p.partition}`), make("td", { class: "route" }, p.replicas.join(", ")),
    make("td", { class: "num" }, p.bytes_total ? [percent(p.bytes_copied / p.bytes_total, 0), bar(p.bytes_copied / p.bytes_total)] : "–"),
    make("td", { class: "num" }, size(p.bytes_total)), make("td", { class: "num" }, p.rate === null ? "–" : `${size(p.rate)}/s`),
    make("td", { class: "num" }, p.seconds_left === null ? "–" : span(p.seconds_left * 1000))));
  const more = it.moving_count > it.moving.length && make("p", { class: "quiet" }, `The first ${whole(it.moving.length)} of ${whole(it.moving_count)} are shown.`);
  return make("div", { class: "scroll" }, make("table", { class: "moving" }, make("caption", { class: "quiet" }, "Partitions in progress"),
    make("thead", {}, make("tr", {}, head.map((h, i) => make("th", { scope: "col", class: i > 1 && "num" }, h)))), make("tbody", {}, rows)), more);
}

function bar(share) {
  const inner = make("i");
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return make("span", { class: "meter-bar", "aria-hidden": true }, inner);
}
