// The verdict, the tiles, the goals, and the service itself.

import { ago, at, badge, clean, count, fill, fresh, label, make, part, percent, say, size, span, ticking, whole } from "./dom.js";

export function verdict(state, { pause, resume, planNow, mayChange, whyRefused, elsewhere }) {
  const g = state.glance;
  document.title = clean(`${g.label} – ${state.cluster_id ?? "Trimtab"}`);
  if (fresh("spoken", g.label, g.sentence)) say(at("spoken"), `${g.label}. ${g.sentence}`);
  if (!fresh("verdict", g, state.why_nothing, state.why_unhealthy, state.why_not_ready, state.paused, state.goals_error, state.goals_stale, state.plan?.state, state.leadership.leads, mayChange(), whyRefused(), elsewhere())) return;
  const node = at("verdict");
  node.className = `verdict ${g.tone}`;
  const said = new Set([g.sentence, g.remainder].flatMap(cores));
  const more = (sentences) => sentences.filter((s) => { const c = cores(s), known = c.some((part) => said.has(part)); c.forEach((part) => said.add(part)); return !known; });
  const list = (title, sentences) => sentences.length > 0 && [make("h2", {}, title), make("ul", {}, sentences.map((s) => make("li", {}, s)))];
  fill(node,
    make("p", { class: "tone" }, g.label),
    make("h1", {}, headline(g.sentence)),
    g.facts.length > 0 && make("ul", { class: "facts" }, g.facts.map((f) => make("li", {}, f))),
    g.help && make("p", { class: "help" }, g.help),
    g.balance && make("p", { class: "remainder" }, g.balance),
    make("p", { class: "remainder" }, g.remainder, elsewhere() && [" ", make("a", { href: elsewhere(), "data-key": "decider" }, "To the page of the instance that decides")]),
    g.facts.length && state.why_nothing.length // the headline says most of it
      ? make("details", { "data-key": "why-nothing" }, make("summary", {}, "Why nothing is moved"), make("ul", {}, more(state.why_nothing).map((s) => make("li", {}, s))))
      : list("Why nothing is happening", more(state.why_nothing)),
    list("Not healthy", state.healthy ? [] : more(state.why_unhealthy)),
    list("Not ready", state.ready ? [] : more(state.why_not_ready)),
    list("The newest edit of the goals file was not taken", state.goals_error ? [state.goals_error] : []),
    list("The calibration is old", state.goals_stale ? [state.goals_stale] : []),
    make("div", { class: "bar" },
      state.paused
        ? make("button", { type: "button", id: "resume", "data-key": "pause", disabled: !mayChange(), onclick: resume }, "Resume …")
        : make("button", { type: "button", id: "pause", "data-key": "pause", disabled: !mayChange(), onclick: pause }, "Pause …"),
      make("button", { type: "button", id: "plan-now", "data-key": "plan-now", disabled: !mayChange() || state.paused || !state.leadership.leads, onclick: planNow }, "Decide now …"),
      state.plan?.state === "proposed" && make("a", { href: "#plan", "data-key": "see-plan" }, "See the plan"),
      whyRefused() && make("span", { class: "quiet" }, whyRefused())));
}

// What is wrong, and then what becomes of it, which stands below it in smaller letters: of several sentences always, of one on a phone.
function headline(sentence) {
  const end = sentence.indexOf(". "), main = end < 0 ? sentence : sentence.slice(0, end + 1);
  const [whole, first, sign, then] = /^(.{12,}?)(; |: )(.*)$/s.exec(main) ?? [];
  return [whole ? [first, make("span", { class: "sign" }, sign), make("span", { class: "then" }, then)] : main,
    end >= 0 && make("span", { class: "rest" }, sentence.slice(end + 2))];
}

// What a sentence says, by which another with the same is known: itself, and what comes after its first colon.
function cores(sentence) {
  const text = clean(sentence).replace(/^Something is broken here: /, "").replace(/\.$/, "").toLowerCase(), at = text.indexOf(": ");
  const who = /^(?:node \d+ is the active controller|it is not known (?:who|which))/.exec(text);
  return [text, ...(at > 0 && text.length - at > 25 ? [text.slice(at + 2)] : []), ...(who ? ["who decides"] : [])];
}

export function tiles(state) {
  if (!fresh("tiles", state.brokers.map((b) => [b.state, b.voice, b.violates.length > 0]), state.cluster, state.goals, state.plan, state.model, state.next_plan_ms, state.paused)) return;
  const old = state.model.metadata_held ? ", as last known" : "";
  const held = state.mode === "approve" && state.has_executor && state.plan?.state === "proposed";
  const m = state.model, c = state.cluster, judged = state.brokers.filter((b) => b.state === "active"), out = judged.filter((b) => b.violates.length).length;
  const hard = state.goals.filter((g) => g.hard && g.violations).reduce((sum, g) => sum + g.violations, 0);
  const worst = state.goals.filter((g) => g.max_deviation !== null).sort((a, b) => b.max_deviation - a.max_deviation)[0];
  const silent = judged.filter((b) => b.voice === "silent" || b.voice === "never").length;
  const tile = (title, value, note, bad) => make("div", {}, make("dt", {}, title), make("dd", { class: `value ${bad ? "bad" : ""}` }, value), make("dd", { class: "note" }, note));
  const away = c.down.filter((b) => !["catching up", "settling", "drained"].includes(b.life)), others = state.brokers.length - judged.length;
  const wrong = [[c.offline, "offline"], [c.under_min_isr, "under min ISR"], [c.under_replicated, "under-replicated"]].filter(([n]) => n);
  fill(at("tiles"),
    c.known && tile("Partitions", wrong.length ? [whole(wrong[0][0]), make("span", { class: "was" }, ` ${wrong[0][1]}`)] : "all in sync",
      wrong.length > 1 ? wrong.slice(1).map(([n, what]) => `${whole(n)} ${what}`).join(", ") : c.last_copy ? `${whole(c.last_copy)} down to one replica` : c.reassigning ? `${whole(c.reassigning)} reassigned now` : `${whole(c.partitions)} in all${old}`, c.offline > 0 || c.under_min_isr > 0 || c.last_copy > 0),
    c.known && tile("Brokers serving", [whole(c.lives.serving ?? 0), make("span", { class: "was" }, ` of ${whole(Object.values(c.lives).reduce((sum, n) => sum + n, 0))}`)],
      away.length ? away.slice(0, 3).map((b) => `broker ${b.id} ${b.life}`).join(", ") + (away.length > 3 ? ", …" : "") : `none is down${old}`, away.length > 0),
    tile("Brokers in range", [whole(judged.length - out), make("span", { class: "was" }, ` of ${whole(judged.length)}${others ? " judged" : ""}`)], silent ? `${whole(silent)} without a reporter heard` : state.brokers.length ? "all reporters heard" : "no broker known yet"),
    tile("Hard violations", whole(hard), hard ? state.goals.filter((g) => g.hard && g.violations).map((g) => g.name).join(", ") : "none", hard > 0),
    tile("Worst deviation", worst ? percent(worst.max_deviation) : "–", worst ? `from the mean, ${worst.name}` : "no goal has one"),
    tile("Plan", state.plan ? count(state.plan.actions, "action") : "none", state.plan ? [state.plan.state, state.plan.bytes_to_move ? `, ${size(state.plan.bytes_to_move)}` : ""] : "nothing planned"),
    tile("Newest sample", m.newest_sample_ms < 0 ? "none yet" : ticking(m.newest_sample_ms, (left) => span(-left)), `${m.lag === null ? "lag unknown" : `${count(m.lag, "record")} behind`}, ${whole(m.stale_partitions)} of ${whole(m.partitions)} partitions stale`),
    tile("Next decision", state.paused ? "paused" : held ? "on hold" : state.next_plan_ms === null ? "–" : ticking(state.next_plan_ms, (left) => (left > 0 ? `in ${span(left)}` : "now")),
      held ? "a plan waits for approval" : state.leadership.error ? "it is not known who decides" : state.leadership.leads ? "this instance decides" : state.leadership.shared ? "another instance decides" : state.leadership.controller === null ? "no controller known" : `node ${state.leadership.controller} decides`));
}

export function goals(state, after) {
  if (!fresh("goals", state.goals, [...after.values()].map((g) => [g.name, g.after, g.explanation]))) return;
  if (!state.goals.length) { fill(at("goals-body"), make("p", { class: "empty" }, "Goals are judged as soon as the cluster is known.")); return; }
  const share = (g) => g.in_band === null ? "–" : [part(g.in_band), make("span", { class: `meter-bar ${g.in_band < 1 ? "low" : ""}`, "aria-hidden": true }, bar(g.in_band))];
  const status = (g) => (g.skipped !== null ? badge("skipped") : g.violations ? badge(g.hard ? "▲ violated" : "▲ outside", "bad") : badge("✓ satisfied", "good"));
  const next = (g) => {
    const it = after.get(g.name);
    if (!it?.after || !it.before) return "–";
    return it.before.violations === 0 && it.after.violations === 0 ? "stays within" : `${whole(it.before.violations)} → ${whole(it.after.violations)} violations`;
  };
  const head = ["goal", "kind", "weight", "status", "violations", "in range", "worst deviation", "with the plan"];
  fill(at("goals-body"), make("div", { class: "scroll" }, make("table", { class: "goals" },
    make("caption", { class: "quiet" }, "In the order of the goals file, as the cluster stands now"),
    make("thead", {}, make("tr", {}, head.map((h, i) => make("th", { scope: "col", class: [2, 4, 5, 6].includes(i) && "num" }, h)))),
    make("tbody", {}, state.goals.map((g) => make("tr", {},
      make("th", { scope: "row" }, g.name),
      make("td", { class: "quiet" }, label(g.kind) + (g.resource ? ` of ${label(g.resource)}` : "")),
      make("td", { class: "num" }, g.hard ? "hard" : g.weight),
      make("td", {}, status(g)),
      g.skipped !== null
        ? make("td", { colspan: 4, class: "quiet" }, g.skipped)
        : [make("td", { class: "num" }, g.violations === null ? "–" : whole(g.violations)), make("td", { class: "num" }, share(g)),
          make("td", { class: "num" }, g.max_deviation === null ? "–" : percent(g.max_deviation)), make("td", { class: "quiet" }, next(g))]))))));
}

function bar(share) {
  const node = make("i");
  node.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return node;
}

export function service(state) {
  if (!fresh("service", state.workers, state.model, state.leadership, state.goals_digest)) return;
  const m = state.model, l = state.leadership;
  const row = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));
  const workers = make("div", { class: "scroll" }, make("table", { class: "workers" }, make("caption", { class: "quiet" }, "Threads of the service"),
    make("thead", {}, make("tr", {}, ["worker", "alive", "last beat", "what stops it"].map((h) => make("th", { scope: "col" }, h)))),
    make("tbody", {}, state.workers.map((w) => make("tr", {}, make("th", { scope: "row" }, w.name),
      make("td", {}, w.alive ? (w.error === null ? badge("✓ alive", "good") : badge("▲ held up", "bad")) : badge("▲ dead", "bad")),
      make("td", { class: "time" }, ago(state.now_ms - w.beat_age_ms)), make("td", { class: w.error === null ? "words none" : "words" }, w.error ?? "–"))))));
  const facts = make("dl", { class: "identity" },
    row("Decides", (l.shared && "another instance") ?? l.error ?? (l.leads ? `this instance, epoch ${l.epoch ?? "unknown"}` : `node ${l.controller ?? "unknown"}`)),
    row("Running since", ago(state.started_ms)),
    row("Goals file", [make("code", {}, state.goals_file), " (", make("a", { href: "/api/v1/goals", target: "_blank", rel: "noopener", "data-get": true }, "in force"), ")"]),
    row("Metadata", m.metadata_held ?? `${count(m.topics, "topic")}, ${count(m.partitions, "partition")}`),
    row("Samples", `${whole(m.samples)} in ${whole(m.records)} records`),
    row("Decode errors", m.decode_errors ? `${whole(m.decode_errors)}; last: ${m.last_decode_error ?? "unknown"}` : "none"),
    row("Lost before read", m.lost ? count(m.lost, "record") : "none"),
    row("Windows covered", Object.entries(m.windows_reached).map(([h, v]) => `${h} ${part(v)}`).join(", ") || "–"),
    row("Memory of the model", size(m.bytes)),
    row("Snapshot", make("a", { href: "/api/v1/snapshot", target: "_blank", rel: "noopener", "data-get": true }, "of this moment")));
  const counts = make("details", { "data-key": "counts" }, make("summary", {}, "What became of batches and values"),
    make("dl", { class: "identity" }, Object.entries(m.counts).map(([k, v]) => row(k.replaceAll("_", " "), whole(v)))));
  fill(at("service-body"), make("div", { class: "columns" }, workers, make("div", {}, facts, counts)));
}
