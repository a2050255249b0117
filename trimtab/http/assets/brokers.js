// Brokers: a drawing for each resource (bars against the band; beyond a few dozen brokers a map of deviations), and the table.

import { amount, at, badge, draw, fill, fresh, label, make, percent, whole } from "./dom.js";
import { Table } from "./table.js";

const MOST_BARS = 40, WIDTH = 560, HEIGHT = 190, LEFT = 44, TOP = 12, BOTTOM = 22;
const VOICES = { fresh: "good", late: "some", silent: "bad", never: "bad" };
const STEPS = ["under-far", "under", "level", "over", "over-far"];
const STEP_WORDS = ["far below", "below its range", "in range", "above its range", "far above"];

// Resources that goals want level, in the order of the goals, with their band and the goals; then others that have a mean.
export function judged(state) {
  const found = new Map();
  for (const goal of state.goals) {
    const level = (goal.bound ?? goal.max_deviation) !== null;
    if (!level || !goal.resource || !state.brokers.some((b) => goal.resource in b.share_of_mean)) continue;
    const known = found.get(goal.resource) || { name: goal.resource, bound: null, goals: [] };
    known.bound ??= goal.bound ?? null;
    known.goals.push(goal.name);
    found.set(goal.resource, known);
  }
  for (const name of new Set(state.brokers.flatMap((b) => Object.keys(b.share_of_mean)))) {
    if (!found.has(name)) found.set(name, { name, bound: null, goals: [] });
  }
  return [...found.values()];
}

// The service judges, not the page: below min_load, for one, a broker is in range wherever it stands.
const isOut = (broker, resource) => resource.name in broker.share_of_mean && resource.goals.some((g) => broker.violates.includes(g));

export class Brokers {
  constructor({ explain, drain, mayChange }) {
    Object.assign(this, { explain, drain, mayChange });
    this.form = at("broker-filters");
    this.form.addEventListener("input", () => this.filter());
    this.form.addEventListener("submit", (e) => e.preventDefault());
    this.table = null;
  }

  show(state) {
    if (!fresh("brokers", state.brokers, state.goals.map((g) => [g.name, g.bound]), this.mayChange())) return;
    const resources = judged(state);
    this.drawings(state, resources);
    const names = resources.map((r) => r.name).join();
    if (!this.table || this.names !== names) { this.table = this.newTable(resources); this.names = names; }
    this.table.rows = state.brokers;
    this.filter(true);
  }

  filter(keep) {
    if (!this.table) return;
    const words = this.form.elements.text.value.trim().toLowerCase().split(/\s+/).filter(Boolean), which = this.form.elements.which.value;
    const accept = (b) => {
      if (which === "out" && !b.violates.length) return false;
      if (which === "quiet" && b.voice === "fresh") return false;
      if (which === "state" && b.state === "active") return false;
      const text = `${b.id} ${b.rack ?? ""} ${b.state} ${b.slow ? "slow" : ""} ${b.voice} ${b.violates.join(" ")}`.toLowerCase();
      return words.every((w) => (/^\d+$/.test(w) ? String(b.id) === w || text.split(/[\s-]+/).includes(w) : text.includes(w)));
    };
    if (keep) this.table.accept = accept; else this.table.filter(accept);
    at("broker-count").textContent = `${whole(this.table.draw())} of ${whole(this.table.rows.length)}`;
  }

  newTable(resources) {
    const columns = [
      { key: "id", title: "broker", sort: (b) => b.id, cell: (b) => b.id, head: true },
      { key: "rack", title: "rack", sort: (b) => b.rack ?? "", cell: (b) => b.rack ?? "–" },
      { key: "state", title: "state", sort: (b) => b.state, cell: (b) => (b.slow
        ? make("span", { class: "badge bad", title: b.slow }, "slow") : b.drained ? badge("drained", "good") : b.state === "active" ? "active" : badge(b.state, "bad")) },
      { key: "voice", title: "reporter", sort: (b) => ["fresh", "late", "silent", "never"].indexOf(b.voice), cell: (b) => badge(b.voice, VOICES[b.voice] || "bad") },
      ...resources.map((r) => ({
        key: r.name, title: label(r.name), num: true, sort: (b) => b.share_of_mean[r.name] ?? -1,
        class: (b) => (isOut(b, r) ? `out ${b.share_of_mean[r.name] < 1 ? "low" : ""}` : ""),
        cell: (b) => (r.name in b.share_of_mean
          ? [percent(b.share_of_mean[r.name], 0), isOut(b, r) && make("span", { class: "hidden" }, " outside its target range"),
            r.name in b.loads && make("small", {}, amount(b.loads[r.name], r.name))]
          : "–"),
      })),
      { key: "violates", title: "outside in", num: true, sort: (b) => b.violates.length, class: () => "count",
        cell: (b) => (b.violates.length ? make("span", { class: "badge bad", title: b.violates.join(", ") }, `${b.violates.length} ${b.violates.length === 1 ? "goal" : "goals"}`) : "–") },
      { key: "buttons", title: "", hiddenTitle: "what can be done", class: () => "row-buttons", cell: (b) => this.buttons(b) },
    ];
    return new Table(at("broker-table"), {
      columns, name: "brokers", page: 12, sorted: "violates", downwards: true, caption: "Loads as shares of the mean; 100% is level",
    });
  }

  buttons(b) {
    const draining = b.drained || b.state === "draining";
    return [
      make("button", { type: "button", class: "small", "data-key": `why-${b.id}`, "aria-label": `Why is broker ${b.id} as it is?`, onclick: () => this.explain(String(b.id)) }, "Why?"),
      (draining || b.state === "active") && make("button", { type: "button", class: "small", "data-key": `drain-${b.id}`, disabled: !this.mayChange(),
        "aria-label": draining ? `Stop draining broker ${b.id}` : `Drain broker ${b.id}`, onclick: () => this.drain(b.id, !draining) }, b.drained ? "Activate" : draining ? "Keep" : "Drain …"),
    ];
  }

  drawings(state, resources) {
    const many = state.brokers.length > MOST_BARS;
    const brokers = [...state.brokers].sort((a, b) => a.id - b.id);
    const keys = many
      ? STEPS.map((s, i) => make("li", {}, make("span", { class: `key ${s}` }), STEP_WORDS[i]))
      : [["after", "in range"], ["out", "outside"], ...(resources.some((r) => r.bound !== null) ? [["band", "target range"]] : [])].map(([c, w]) => make("li", {}, make("span", { class: `key bars ${c}` }), w));
    if (many) keys.push(make("li", {}, "One square a broker, by id. Point at one to see it, click to find it in the table."));
    const figures = resources.map((r) => (many ? this.map(brokers, r) : bars(brokers, r)));
    fill(at("charts"), resources.length
      ? [make("ul", { class: "legend" }, keys), make("div", { class: "figures" }, figures)]
      : make("p", { class: "empty" }, "No load is known yet, so there is nothing to draw."));
  }

  // One square a broker, by id, row after row; five colours. Drawn as five paths: a thousand squares are five elements.
  map(brokers, r) {
    const cell = brokers.length > 600 ? 11 : 16, across = Math.floor(WIDTH / cell), rows = Math.ceil(brokers.length / across), bound = r.bound ?? 0.1;
    const paths = STEPS.map(() => ""), counts = STEPS.map(() => 0);
    brokers.forEach((b, i) => {
      const share = b.share_of_mean[r.name];
      if (share === undefined) return;
      const off = share - 1, step = !isOut(b, r) ? 2 : off < 0 ? (off < -2 * bound ? 0 : 1) : off > 2 * bound ? 4 : 3;
      const x = (i % across) * cell, y = Math.floor(i / across) * cell, s = cell - 1.5;
      paths[step] += `M${x} ${y}h${s}v${s}h${-s}z`;
      counts[step] += 1;
    });
    const words = STEPS.map((_, i) => counts[i] && `${whole(counts[i])} ${STEP_WORDS[i]}`).filter(Boolean).join(", ");
    const under = make("p", { class: "under-cursor", "aria-hidden": true }, "\u00a0");
    const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${rows * cell}`, role: "img", "aria-label": `${label(r.name)}: ${words}`, class: "heat" },
      draw("rect", { width: WIDTH, height: rows * cell, fill: "transparent" }), paths.map((d, i) => d && draw("path", { d, class: STEPS[i] })));
    const find = (event) => {
      const box = picture.getBoundingClientRect(), scale = WIDTH / box.width;
      const x = Math.floor(((event.clientX - box.left) * scale) / cell), y = Math.floor(((event.clientY - box.top) * scale) / cell);
      return x < across ? brokers[y * across + x] : undefined;
    };
    picture.addEventListener("mousemove", (event) => {
      const b = find(event);
      if (b) under.textContent = sentence(b, r);
    });
    picture.addEventListener("click", (event) => {
      const b = find(event);
      if (!b) return;
      this.form.elements.text.value = String(b.id);
      this.form.elements.which.value = "";
      this.filter();
      this.form.scrollIntoView({ block: "center" });
    });
    return make("figure", { class: "chart" }, caption(r, words), picture, under);
  }
}

const sentence = (b, r) => `broker ${b.id}${b.rack ? `, ${b.rack}` : ""}: ${percent(b.share_of_mean[r.name], 0)} of the mean` +
  (r.name in b.loads ? `, ${amount(b.loads[r.name], r.name)}` : "");

const caption = (r, words) => make("figcaption", {}, make("b", {}, label(r.name)), " ",
  make("span", {}, `${r.bound === null ? "" : `target range ±${percent(r.bound, Number.isInteger(r.bound * 100) ? 0 : undefined)}; `}${words}`));

function bars(brokers, r) {
  const known = brokers.filter((b) => r.name in b.share_of_mean);
  const most = Math.max(1 + (r.bound ?? 0), ...known.map((b) => b.share_of_mean[r.name])) * 1.06;
  const step = (WIDTH - LEFT - 8) / Math.max(brokers.length, 4), y = (share) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - Math.max(0, share) / most);
  const marks = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 10].filter((m) => m <= most && (most < 3.2 || Number.isInteger(m)));
  const wide = Math.min(step * 0.62, 34), end = WIDTH - 8, out = known.filter((b) => isOut(b, r)).length;
  const words = out ? `${out} of ${known.length} outside` : `all ${known.length} in range`;
  const node = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${label(r.name)}: ${words}` },
    marks.map((m) => [draw("line", { class: "grid", x1: LEFT, x2: end, y1: y(m), y2: y(m) }), draw("text", { class: "tick end", x: LEFT - 6, y: y(m) + 3.5 }, percent(m, 0))]),
    r.bound !== null && draw("rect", { class: "band", x: LEFT, width: end - LEFT, y: y(1 + r.bound), height: y(1 - r.bound) - y(1 + r.bound) }),
    draw("line", { class: "mean", x1: LEFT, x2: end, y1: y(1), y2: y(1) }),
    brokers.map((b, i) => {
      const middle = LEFT + step * (i + 0.5), share = b.share_of_mean[r.name];
      const name = (brokers.length <= 24 || i % 2 === 0) && draw("text", { class: "tick mid", x: middle, y: HEIGHT - 7 }, b.id);
      if (share === undefined) return name;
      const flag = isOut(b, r), top = y(share);
      return draw("g", { class: "broker" }, draw("title", {}, sentence(b, r)), draw("rect", { class: "hit", x: middle - step / 2, width: step, y: TOP, height: HEIGHT - TOP - BOTTOM }),
        draw("rect", { class: `load ${flag ? "out" : ""}`, x: middle - wide / 2, width: wide, y: top, height: Math.max(0, HEIGHT - BOTTOM - top), rx: 1.5 }),
        flag && draw("path", { class: "flag", d: share > 1 ? `M${middle - 4} ${top - 3}h8l-4 -6z` : `M${middle - 4} ${top - 9}h8l-4 6z` }), name);
    }));
  return make("figure", { class: "chart" }, caption(r, words), node);
}
