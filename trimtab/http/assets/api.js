// Asking the service, telling it what to do, and hearing from it.

export class Refusal extends Error {
  constructor(status, problem) {
    super([problem.detail, problem.what_to_do].filter(Boolean).join(" ") || `The service answered ${status}.`);
    this.status = status;
  }
}

const KEY = "trimtab-token";
let kept = null;
const store = (work) => { try { return work(); } catch { return null; } }; // a browser without storage
export const token = {
  get: () => kept ?? store(() => sessionStorage.getItem(KEY)),
  set: (value) => { kept = value; store(() => sessionStorage.setItem(KEY, value)); },
  forget: () => { kept = null; store(() => sessionStorage.removeItem(KEY)); },
};

const head = (more) => ({ ...more, ...(token.get() ? { Authorization: `Bearer ${token.get()}` } : {}) });

async function answered(request) {
  let response;
  try { response = await request; } catch { throw new Refusal(0, { detail: "The service cannot be reached.", what_to_do: "Is it running?" }); }
  if (response.ok) return response;
  let problem = {};
  try { problem = await response.json(); } catch { /* not one of ours */ }
  throw new Refusal(response.status, problem);
}

export const ask = (path, signal) => answered(fetch(path, { headers: head({}), cache: "no-store", credentials: "omit", signal }));
export const json = async (path) => (await ask(path)).json();
export const text = async (path) => (await ask(path)).text();
export const tell = async (path, body) => (await answered(fetch(path, {
  method: "POST", headers: head({ "Content-Type": "application/json" }), credentials: "omit", body: JSON.stringify(body),
}))).json();

// Calls back on every event of the stream, and with whether it is open; connects again when it ends, ever more slowly.
export async function listen(onChange, onOpen) {
  let wait = 1000;
  for (;;) {
    try {
      const response = await ask("/api/v1/events");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      onOpen(true);
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        wait = 1000;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const line = part.split("\n").find((l) => l.startsWith("data: "));
          if (line) onChange(JSON.parse(line.slice(6)));
        }
      }
    } catch { /* tried again below */ }
    onOpen(false);
    await new Promise((r) => setTimeout(r, wait));
    wait = Math.min(15000, wait * 2);
  }
}
