// Colours for source text, from a worker that is ended when a text takes too long.

const MOST_MS = 3000;
const MOST_CHARACTERS = 600_000;
const SOURCE = new URL("highlight-worker.js", import.meta.url).href;

// The page's policy refuses every script address but the one that this rule lets through.
const rule = globalThis.trustedTypes?.createPolicy("inspector-worker", {
  createScriptURL(address) {
    if (address !== SOURCE) throw new TypeError("The inspector has one worker.");
    return address;
  },
});

let worker = null;
let last = 0;
const waiting = new Map();

function answered({ data: { id, lines } }) {
  waiting.get(id)?.(lines);
}

function failed() {
  worker?.terminate();
  worker = null;
  for (const done of [...waiting.values()]) done(null);
}

function started() {
  if (worker === null) {
    worker = new Worker(rule ? rule.createScriptURL(SOURCE) : SOURCE, { type: "module" });
    worker.addEventListener("message", answered);
    worker.addEventListener("error", failed);
  }
  return worker;
}

/** Split text into lines without colours. */
export const plainLines = (text) => text.split("\n").map((line) => (line === "" ? [] : [["", line]]));

/** Return lines of [class, text], or null when there are no colours for this text. */
export function highlight(text, language) {
  if (language === null || text.length > MOST_CHARACTERS) return Promise.resolve(null);
  last += 1;
  const id = last;
  return new Promise((resolve) => {
    const timer = setTimeout(failed, MOST_MS);
    waiting.set(id, (lines) => {
      clearTimeout(timer);
      waiting.delete(id);
      resolve(lines);
    });
    started().postMessage({ id, text, language });
  });
}
