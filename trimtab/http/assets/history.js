// Decisions, newest first. Those that say the same again and again stand in one line.

import { at, badge, count, fill, fresh, hour, make, size, span, when } from "./dom.js";
import { json } from "./api.js";

const PAGE = 50, LINES = 12;
const TONES = { planned: "some", nothing: "good", refused: "bad", failed: "bad" };

export class History {
  constructor() { this.found = []; this.older = null; this.lines = LINES; }

  async show() {
    const page = await json(`/api/v1/decisions?limit=${PAGE}`);
    const oldest = page.decisions.at(-1)?.id ?? 0;
    const kept = this.found.filter((d) => d.id < oldest);
    if (!kept.length) this.older = page.next_before;
    this.found = [...page.decisions, ...kept];
    if (fresh("decisions", this.found)) this.draw();
  }

  async more() {
    this.lines += LINES;
    if (groups(this.found).length < this.lines && this.older !== null) {
      const page = await json(`/api/v1/decisions?limit=${PAGE}&before=${this.older}`);
      this.found = [...this.found, ...page.decisions];
      this.older = page.next_before;
    }
    this.draw();
  }

  draw() {
    const all = groups(this.found), visible = all.slice(0, this.lines), left = all.length > visible.length || this.older !== null;
    if (!all.length) { fill(at("decisions-body"), make("p", { class: "empty" }, "This instance has not decided anything yet.")); return; }
    const head = ["time", "cause", "verdict", "reason, and what came of it", "plan", "took"];
    fill(at("decisions-body"), make("div", { class: "scroll" },
      make("table", { class: "decisions" }, make("caption", { class: "quiet" }, "Newest first"),
        make("thead", {}, make("tr", {}, head.map((h, i) => make("th", { scope: "col", class: i > 3 && "num" }, h)))),
        make("tbody", {}, visible.map(line))),
      left && make("div", { class: "pages" }, make("button", { type: "button", "data-key": "decisions-more", onclick: () => this.more() }, "Show older"))));
  }
}

function groups(decisions) {
  const all = [];
  for (const d of decisions) {
    const last = all.at(-1);
    const same = last && !d.outcomes.length && !last[0].outcomes.length && !d.plan_id && !last[0].plan_id &&
      ["verdict", "cause", "reason", "instance"].every((k) => last[0][k] === d[k]);
    if (same) last.push(d); else all.push([d]);
  }
  return all;
}

function line(group) {
  const d = group[0], first = group.at(-1), several = group.length > 1;
  const took = Math.max(...group.map((g) => g.ended_ms - g.began_ms));
  return make("tr", {},
    make("th", { scope: "row", class: "time", title: `${when(d.ended_ms)}, decision ${d.id} of ${d.instance}` },
      several ? [`${hour(first.ended_ms)} – ${hour(d.ended_ms)}`] : hour(d.ended_ms)),
    make("td", {}, d.cause),
    make("td", {}, badge(d.verdict, TONES[d.verdict]), several && make("span", { class: "quiet" }, ` ${group.length} times`)),
    make("td", { class: "words" }, d.reason, d.outcomes.length > 0 && make("ul", { class: "outcomes" },
      d.outcomes.map(([time, kind, who, detail]) => make("li", {}, `${hour(time)} ${kind} by ${who}${detail ? `: ${detail}` : ""}`)))),
    make("td", { class: d.plan_id ? "num" : "num none", "data-label": "plan" }, d.plan_id ? make("span", { title: d.plan_id }, `${count(d.actions, "action")}${d.bytes_to_move ? `, ${size(d.bytes_to_move)}` : ""}`) : "–"),
    make("td", { class: "num", "data-label": "took" }, took < 1000 ? `${took} ms` : took < 10000 ? `${(took / 1000).toFixed(1)} s` : span(took)));
}
