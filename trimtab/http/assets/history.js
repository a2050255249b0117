// Decisions, newest first. Those that say the same again and again, but for its figures, stand in one line.

import { at, badge, count, fill, fresh, hour, make, size, span, when, whole } from "./dom.js";
import { json } from "./api.js";

const PAGE = 50, LINES = 12, MOST_AT_ONCE = 500, MOST_FOLDED = 3000; // decisions
const TONES = { planned: "some", nothing: "good", refused: "bad", failed: "bad" };

export class History {
  constructor() { this.found = []; this.older = null; this.lines = LINES; this.most = MOST_FOLDED; }

  async show() {
    const page = await json(`/api/v1/decisions?limit=${PAGE}`);
    const oldest = page.decisions.at(-1)?.id ?? 0;
    const kept = this.found.filter((d) => d.id < oldest);
    if (!kept.length) this.older = page.next_before;
    this.found = [...page.decisions, ...kept];
    await this.fill();
    if (fresh("decisions", this.found)) this.draw();
  }

  async more() {
    this.lines += LINES;
    this.most += MOST_FOLDED;
    await this.fill();
    this.draw();
  }

  // Enough decisions for the lines that are to be seen: a day of the same every minute is one line.
  async fill() {
    while (this.older !== null && this.found.length < this.most && groups(this.found).length <= this.lines) {
      const page = await json(`/api/v1/decisions?limit=${MOST_AT_ONCE}&before=${this.older}`);
      this.found = [...this.found, ...page.decisions];
      this.older = page.next_before;
    }
  }

  draw() {
    const all = groups(this.found), visible = all.slice(0, this.lines), left = all.length > visible.length || this.older !== null;
    if (!all.length) { fill(at("decisions-body"), make("p", { class: "empty" }, "This instance has not decided anything yet.")); return; }
    const head = ["time", "cause", "verdict", "reason, and what came of it", "plan", "took"];
    fill(at("decisions-body"), make("div", { class: "scroll" },
      make("table", { class: "decisions" }, make("caption", { class: "quiet" }, "Newest first; times are UTC"),
        make("thead", {}, make("tr", {}, head.map((h, i) => make("th", { scope: "col", class: i > 3 && "num" }, h)))),
        make("tbody", {}, visible.map((group) => line(group, group === all.at(-1) && this.older !== null)))),
      left && make("div", { class: "pages" }, make("button", { type: "button", "data-key": "decisions-more", onclick: () => this.more() }, "Show older"))));
  }
}

// Plans fold only where none can be approved and they are of one size; what else a figure in a sentence says changes with every look.
function groups(decisions) {
  const all = [], words = (d) => d.reason.replace(/\d[\d.,]*/g, "#");
  for (const d of decisions) {
    const last = all.at(-1);
    const same = last && !d.outcomes.length && !last[0].outcomes.length && (!d.plan_id || d.mode === "dry-run") && words(last[0]) === words(d) &&
      ["verdict", "cause", "instance", "mode", "actions", "replica_moves"].every((k) => last[0][k] === d[k]);
    if (same) last.push(d); else all.push([d]);
  }
  return all;
}

function line(group, more) {
  const d = group[0], first = group.at(-1), several = group.length > 1;
  const took = Math.max(...group.map((g) => g.ended_ms - g.began_ms));
  return make("tr", {},
    make("th", { scope: "row", class: "time", title: `${when(d.ended_ms)}, decision ${d.id} of ${d.instance}` },
      hour(d.ended_ms)),
    make("td", {}, d.cause),
    make("td", {}, badge(d.verdict, TONES[d.verdict])),
    make("td", { class: "words" }, d.reason,
      several && make("span", { class: "quiet" }, ` The same as before, but for figures: ${more ? "at least " : ""}${whole(group.length)} times since ${hour(first.ended_ms)}.`),
      d.outcomes.length > 0 && make("ul", { class: "outcomes" },
      d.outcomes.map(([time, kind, who, detail]) => make("li", {}, `${hour(time)} ${kind} by ${who}${detail ? `: ${detail}` : ""}`)))),
    make("td", { class: d.plan_id ? "num" : "num none", "data-label": "plan" }, d.plan_id ? make("span", { title: d.plan_id }, `${count(d.actions, "action")}${d.bytes_to_move ? `, ${size(d.bytes_to_move)}` : ""}`) : "–"),
    make("td", { class: "num", "data-label": "took" }, took < 1000 ? `${took} ms` : took < 10000 ? `${(took / 1000).toFixed(1)} s` : span(took)));
}
