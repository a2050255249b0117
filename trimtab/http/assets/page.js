// The live page: asks the service, draws the parts, and carries out what a person with the token asks for.

import { at, clean, fill, make, say, setClock } from "./dom.js";
import { ask, json, listen, tell, text, token } from "./api.js";
import { Brokers } from "./brokers.js";
import { execution } from "./execution.js";
import { PlanPart } from "./plan.js";
import { History } from "./history.js";
import { goals, service, tiles, verdict } from "./glance.js";
import { clusters, elsewhere } from "./clusters.js";

let access = { read: "open", change: "refused", why_refused: null }, state = null;
const mayChange = () => access.change === "token";

// --- theme: follows the system unless told otherwise; the same key as the reports
const THEMES = ["auto", "light", "dark"];
function theme(name) {
  if (!THEMES.includes(name)) name = "auto";
  if (name === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
  at("theme").textContent = `Theme: ${name}`;
  at("theme").dataset.now = name;
  try { localStorage.setItem("trimtab-theme", name); } catch { /* a browser without storage */ }
}
let stored = "auto", myName = "";
try { stored = localStorage.getItem("trimtab-theme"); myName = localStorage.getItem("trimtab-name") ?? ""; } catch { /* the same */ }
theme(stored);
at("theme").addEventListener("click", () => theme(THEMES[(THEMES.indexOf(at("theme").dataset.now) + 1) % 3]));

// --- the dialog: the token where it is not known, a name, a reason
function question({ title, words, yes, withWhy, withWho = true, act }) {
  const dialog = at("ask"), form = at("ask-form"), fault = at("ask-fault"), asker = document.activeElement?.dataset.key;
  say(at("ask-title"), title);
  say(at("ask-words"), words);
  at("ask-yes").textContent = yes;
  at("ask-token").hidden = Boolean(token.get());
  at("ask-who").hidden = !withWho;
  form.elements.who.required = withWho;
  at("ask-why").hidden = !withWhy;
  form.elements.token.value = "";
  form.elements.token.required = !token.get();
  form.elements.who.value = myName;
  form.elements.why.value = "";
  fault.hidden = true;
  dialog.showModal();
  return new Promise((resolve) => {
    const end = (done) => {
      form.onsubmit = null;
      dialog.onclose = null;
      dialog.close();
      if (asker) document.querySelector(`[data-key="${CSS.escape(asker)}"]`)?.focus({ preventScroll: true }); // it may have been drawn again
      resolve(done);
    };
    at("ask-no").onclick = () => end(false);
    dialog.onclose = () => { if (!dialog.open) end(false); }; // else the close event of an earlier question comes late
    form.onsubmit = async (event) => {
      event.preventDefault();
      if (!at("ask-token").hidden) token.set(form.elements.token.value.trim());
      const who = form.elements.who.value.trim(), why = form.elements.why.value.trim();
      myName = who;
      try { localStorage.setItem("trimtab-name", who); } catch { /* a browser without storage */ }
      at("ask-yes").disabled = true;
      try {
        await act({ who, why });
        end(true);
      } catch (error) {
        if (error.status === 401) { token.forget(); at("ask-token").hidden = false; form.elements.token.required = true; form.elements.token.focus(); }
        say(fault, error.message);
        fault.hidden = false;
      } finally {
        at("ask-yes").disabled = false;
        at("forget").hidden = !token.get();
      }
    };
  });
}
at("forget").addEventListener("click", () => { token.forget(); at("forget").hidden = true; });

let noticed = "";
function notice(words, bad = false) {
  noticed = words;
  const node = at("notice");
  node.hidden = !words;
  node.className = `notice ${bad ? "bad" : ""}`;
  say(node, words);
}

async function change(asked, path, body, said) {
  const done = await question({ ...asked, act: async ({ who, why }) => {
    const answer = await tell(path, { ...body, who, ...(asked.withWhy ? { why } : {}) });
    notice(said ?? answer.done);
  } });
  if (done) refresh();
}

const planUrl = (plan) => `/api/v1/plans/${encodeURIComponent(plan.plan_id)}`;
const plan = new PlanPart({
  mayChange,
  onGoals: () => state && goals(state, plan.goals()),
  approve: (p) => change({ title: "Approve this plan?", yes: "Approve", words: `${p.plan_id}: ${p.actions} actions. They are carried out in their order; pausing stops before the next one.` },
    `${planUrl(p)}/approve`, {}, "Approved."),
  reject: (p) => change({ title: "Reject this plan?", yes: "Reject", words: `${p.plan_id} will not be carried out.`, withWhy: true }, `${planUrl(p)}/reject`, {}, "Rejected."),
});
const brokers = new Brokers({
  mayChange, explain,
  drain: (broker, on) => change(on
    ? { title: `Drain broker ${broker}?`, yes: "Drain", words: "Plans from now on take every replica off it." }
    : { title: `Keep broker ${broker}?`, yes: "Keep", words: "Plans from now on treat it as any other." }, "/api/v1/drain", { broker, on }),
});
const past = new History();
const buttons = {
  mayChange, elsewhere,
  whyRefused: () => access.why_refused,
  pause: () => change({ title: "Pause?", yes: "Pause", words: "No plan is made or started, and no further step is taken, until an operator resumes; what is in progress goes on.", withWhy: true }, "/api/v1/pause", {}),
  resume: () => change({ title: "Resume?", yes: "Resume", words: "Planning goes on, and approved plans too." }, "/api/v1/resume", {}),
  planNow: () => change({ title: "Decide now?", yes: "Decide", words: "The service plans at once, whatever the interval says." }, "/api/v1/plan", {}),
};

const said = (title, yes, words, path, more, withWhy) => (it) => change({ title, yes, words: `${words} Plan ${it.plan_id}.`, withWhy }, `/api/v1/execution/${path}`, { plan_id: it.plan_id, ...more });
const acts = {
  mayChange, whyRefused: buttons.whyRefused, pause: buttons.pause, resume: buttons.resume,
  cancel: said("Cancel the execution?", "Cancel it", "No further step starts, and what is in progress is taken back; what is done stays, and no throttle is left.", "cancel", {}, true),
  finish: said("Finish, and start nothing more?", "Finish", "No further step starts; what is in progress completes, and what is done stays.", "cancel", { finish: true }, true),
  rollback: said("Roll it back?", "Roll back", "Everything that it changed is brought back, by copying where replicas were removed.", "rollback", {}),
};

async function explain(what) {
  const place = at("why-answer"), broker = /^\d+$/.test(what);
  at("why-form").elements.what.value = what;
  place.hidden = false;
  place.className = "answer";
  place.textContent = "…";
  at("why").scrollIntoView({ block: "start" });
  try {
    const answer = await text(`/api/v1/explain?${broker ? "broker" : "partition"}=${encodeURIComponent(what)}`);
    place.textContent = answer.split("\n").map(clean).join("\n");
  } catch (error) {
    place.className = "answer bad";
    say(place, error.message);
  }
}
at("why-form").addEventListener("submit", (event) => { event.preventDefault(); explain(at("why-form").elements.what.value.trim()); });

// Where reading takes the token a link cannot carry it: fetch, and hand over as a file.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-get]");
  if (!link || access.read === "open") return;
  event.preventDefault();
  try {
    const response = await ask(link.href), url = URL.createObjectURL(await response.blob());
    const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "trimtab.txt";
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  } catch (error) { notice(error.message, true); }
});

// A button drawn again between press and release gets no click: drawing waits for the release, at most five seconds.
let pressed = -Infinity;
addEventListener("pointerdown", () => { pressed = performance.now(); }, true);
for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, () => { pressed = -Infinity; }, true);

// --- one round: the state, then the parts. At most one under way, at most one more waiting.
let busy = false, again = false, trouble = "", asking = false, hearing = false, stale = true;
async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    do {
      again = false;
      await round();
    } while (again);
  } finally { busy = false; }
}

async function round() {
  try {
    if (stale) { access = await json("/api/v1/access"); stale = false; }
    if (access.read === "token" && !token.get()) throw Object.assign(new Error("Reading here takes the token."), { status: 401 });
    state = await json("/api/v1/state");
    setClock(state.now_ms);
    while (performance.now() - pressed < 5000) await new Promise((go) => setTimeout(go, 20));
    draw();
    await Promise.all([plan.show(state), past.show(), clusters(refresh).then(() => verdict(state, buttons))]);
    if (trouble && noticed === trouble) notice("");
    trouble = "";
    if (!hearing) { hearing = true; listen(heard, live); }
  } catch (error) {
    if (error.status === 401 && !asking) { signIn(); return; }
    trouble = error.message;
    stale = true;
    if (!asking) notice(trouble, true);
  }
}

async function signIn() {
  asking = true;
  token.forget();
  const done = await question({ title: "Token", yes: "Read", words: "Reading here takes the token.", withWho: false, act: () => json("/api/v1/state") });
  asking = false;
  if (done) refresh(); else notice("Reading here takes the token. Reload the page to give it.", true);
}

function draw() {
  at("forget").hidden = !token.get();
  at("mode").hidden = false;
  say(at("mode"), [state.mode, state.mode !== "dry-run" && !state.has_executor && "no executor", state.paused && "paused"].filter(Boolean).join(", "));
  say(at("version"), state.version);
  fill(at("who"), make("span", {}, "cluster ", make("b", {}, state.cluster_id ?? "unknown")), make("span", {}, "instance ", make("b", {}, state.instance)));
  verdict(state, buttons);
  tiles(state);
  goals(state, plan.goals());
  brokers.show(state);
  execution(state, acts);
  service(state);
}

function live(open) {
  at("live").className = `live ${open ? "on" : "off"}`;
  at("live").textContent = open ? "live" : "reconnecting";
  stale = stale || !open;
}

function heard(event) {
  if (event.trouble) notice((trouble = event.trouble), true); else refresh();
}

refresh();
setInterval(() => { if (!document.hidden) refresh(); }, 15000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
