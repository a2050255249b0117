// Elements and words. Text enters the page through textContent only; names from the cluster cannot steer it.

const SVG = "http://www.w3.org/2000/svg";
const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

export const clean = (text) => String(text).replace(STEERING, " ");

// make("td", {class: "num", onclick: f}, "text", node, …); null, undefined and false leave a child or an attribute out.
export function make(tag, attributes, ...children) { return dress(document.createElement(tag), attributes, children); }
export function draw(tag, attributes, ...children) { return dress(document.createElementNS(SVG, tag), attributes, children); }

function dress(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : clean(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
  return node;
}

export const say = (node, text) => { node.textContent = clean(text); };
export const at = (id) => document.getElementById(id);

// New content for a node; what had the focus gets it back, found by its data-key.
export function fill(node, ...children) {
  const held = node.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const open = new Set([...node.querySelectorAll("details[open]")].map((d) => d.dataset.key));
  node.replaceChildren(...children.flat(Infinity).filter((c) => c));
  if (held) node.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  node.querySelectorAll("details").forEach((d) => { if (open.has(d.dataset.key)) d.open = true; });
}

// Whether a part of the page has other data than when it was drawn last.
const drawn = new Map();
export function fresh(part, ...data) {
  const now = JSON.stringify(data);
  if (drawn.get(part) === now) return false;
  drawn.set(part, now);
  return true;
}

export const badge = (text, tone) => make("span", { class: `badge ${tone || ""}` }, text);

// --- numbers, as in the reports: three digits, decimal prefixes; percent only here
const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];
const UNITS = {
  network_in: "B/s", network_out: "B/s", leader_network_in: "B/s", potential_network_out: "B/s", disk: "B", cpu: " cores",
  produce_rate: " req/s", fetch_rate: " req/s",
};
export const label = (resource) => resource.replaceAll("_", " ");
export const count = (n, noun, many) => `${whole(n)} ${n === 1 ? noun : many || noun + "s"}`;
export const whole = (n) => Number(n).toLocaleString("en-US", { maximumFractionDigits: 0 });
export const size = (bytes) => { const [n, p] = prefixed(bytes); return `${n} ${p}B`; };
export function amount(value, resource) {
  if (resource === "replicas" || resource === "leaders") return whole(value);
  const [n, p] = prefixed(value), unit = UNITS[resource] || "";
  return unit.startsWith("B") ? `${n} ${p}${unit}` : n + p + unit;
}
function prefixed(value) {
  let v = Math.abs(value), step = 0;
  while (step < PREFIXES.length - 1 && Number(v.toPrecision(3)) >= 1000) { v /= 1000; step += 1; }
  const digits = v >= 999.5 || (step === 0 && Number.isInteger(v)) ? v.toFixed(0) : v.toPrecision(3);
  return [(value < 0 ? "−" : "") + Number(digits).toLocaleString("en-US", { useGrouping: false, minimumFractionDigits: (digits.split(".")[1] || "").length }), PREFIXES[step]];
}
export function percent(share, digits) {
  if (share === null || share === undefined) return "–";
  const value = share * 100;
  return `${value.toFixed(digits ?? (Math.abs(value) < 9.95 && Math.abs(value) >= 0.05 ? 1 : 0))}%`;
}
// 100% only when all are.
export function part(share) { return share < 1 && share > 0.99 ? `${(Math.floor(share * 1000) / 10).toFixed(1)}%` : percent(share, 0); }

// --- times; the service's clock counts, ours only says how long ago it was read
const clock = { theirs: 0, ours: 0 };
export function setClock(now) { clock.theirs = now; clock.ours = performance.now(); }
export const now = () => clock.theirs + performance.now() - clock.ours;
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 100) return `${s} s`;
  if (s < 6000) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} days`;
}
// In UTC, as all sentences of the service and its log.
export const when = (ms) => `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
export const hour = (ms) => when(ms).slice(0, 19);
// A time that goes on by itself: "12 s ago", "in 40 s".
export function ago(ms) { return ticking(ms, (left) => (left <= 0 ? `${span(-left)} ago` : `in ${span(left)}`)); }
export function ticking(ms, words) {
  const node = make("time", { datetime: new Date(ms).toISOString(), title: when(ms) }, words(ms - now()));
  node.again = () => { node.textContent = words(ms - now()); };
  return node;
}
setInterval(() => document.querySelectorAll("time").forEach((t) => t.again?.()), 1000);
