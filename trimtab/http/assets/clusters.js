// Other clusters, each with the headline of its own page; read-only. Nothing is shown where none are configured.

import { ago, at, badge, count, fill, fresh, make } from "./dom.js";
import { json } from "./api.js";

const TONES = { good: "✓ ", some: "▲ ", bad: "▲ ", plain: "" };
const EVERY = 10000, SOON = 1500;
let asked = -EVERY;

// At most every ten seconds; sooner where a cluster was never heard yet. `redraw` is called when there is news.
export async function clusters(redraw) {
  if (performance.now() - asked < EVERY) return;
  asked = performance.now();
  const found = (await json("/api/v1/clusters")).clusters;
  if (found.some((c) => c.asked_ms === null)) { asked = -EVERY; setTimeout(redraw, SOON); }
  const section = at("clusters");
  section.hidden = found.length < 2; // of this one alone the page says enough
  decider = found.find((c) => c.here && !c.decides)?.url ?? null;
  if (!fresh("clusters", found)) return;
  fill(at("clusters-body"), make("ul", { class: "clusters" }, found.map(one)));
}

// Address of the page of the instance that decides on this cluster; null where it is this one, or not known.
let decider = null;
export const elsewhere = () => decider;

function one(c) {
  const facts = [c.mode, c.brokers !== null && count(c.brokers, "broker"), c.partitions !== null && count(c.partitions, "partition"),
    c.reached && !c.here && !c.decides && "no instance that decides was reached"].filter(Boolean).join(", ");
  const name = c.here ? make("b", {}, c.name) : c.url ? make("a", { href: c.url, target: "_blank", rel: "noopener noreferrer", "data-key": `cluster-${c.name}` }, c.name) : make("b", {}, c.name);
  return make("li", { class: c.tone }, make("p", {}, name, " ", badge(`${TONES[c.tone]}${c.label}`, c.tone === "plain" ? "" : c.tone), c.here && make("span", { class: "quiet" }, " this page")),
    c.sentence && make("p", { class: "words" }, c.sentence),
    make("p", { class: "quiet" }, facts, !c.here && c.asked_ms !== null && [facts && ", ", "asked ", ago(c.asked_ms)]));
}
