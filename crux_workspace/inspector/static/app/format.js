// Numbers, times and names as people read them.

const UNITS = ["B", "KB", "MB", "GB", "TB"];

/** 1536 -> "1.5 KB"; powers of 1024. */
export function bytes(count) {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

export const number = (count) => count.toLocaleString("en-US");

/** "1 file", "2 files". */
export const plural = (count, word, more = `${word}s`) => `${number(count)} ${count === 1 ? word : more}`;

const STEPS = [
  [60_000, 1000, "s"],
  [3_600_000, 60_000, "min"],
  [86_400_000, 3_600_000, "h"],
  [30 * 86_400_000, 86_400_000, "d"],
];

/** "just now", "5 min ago", or the date. */
export function ago(at, now = Date.now()) {
  const passed = now - at;
  if (passed < 5000) return "just now";
  const step = STEPS.find(([below]) => passed < below);
  if (step) return `${Math.floor(passed / step[1])} ${step[2]} ago`;
  return new Date(at).toISOString().slice(0, 10);
}

/** The full local time, for tooltips. */
export const exactTime = (at) => new Date(at).toLocaleString("en-GB", { timeZoneName: "short" });

export const nameOf = (path) => (path === "/" ? "/" : path.replace(/\/+$/, "").split("/").pop());
export const parentOf = (path) => path.replace(/\/+[^/]*\/*$/, "") || "/";

const unit = (text, index) => {
  const code = text.charCodeAt(index);
  return code >= 0xd800 && code <= 0xdfff ? code + 0x10000 : code;
};

/** Order names by code points, as the service lists them. */
export function compareNames(a, b) {
  const shorter = Math.min(a.length, b.length);
  for (let index = 0; index < shorter; index += 1) {
    if (a.charCodeAt(index) !== b.charCodeAt(index)) return unit(a, index) - unit(b, index);
  }
  return a.length - b.length;
}

// Characters that a reader cannot see, or that turn the text around them: they are shown by their code.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** A name with what is invisible or turns text around spelled out, so that it cannot look like another. */
export const visible = (name) =>
  name.replace(UNSEEN, (found) => `\u27e8U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);

const LANGUAGES = {
  bash: "bash sh zsh", c: "c h", cpp: "cc cpp cxx hpp hh", csharp: "cs", css: "css", diff: "diff patch", go: "go",
  graphql: "graphql gql", ini: "ini toml cfg conf", java: "java", javascript: "js mjs cjs jsx", json: "json jsonl ipynb",
  kotlin: "kt kts", less: "less", lua: "lua", makefile: "mk makefile", markdown: "md markdown", objectivec: "m mm",
  perl: "pl pm", php: "php", python: "py pyi", r: "r", ruby: "rb", rust: "rs", scss: "scss", sql: "sql", swift: "swift",
  typescript: "ts tsx mts", xml: "html htm xml svg xhtml vue", yaml: "yml yaml",
};
const BY_EXTENSION = new Map(
  Object.entries(LANGUAGES).flatMap(([language, all]) => all.split(" ").map((extension) => [extension, language])),
);

/** The highlighter's language for a file, or null for plain text. */
export function languageOf(path, contentKind) {
  if (contentKind === "json") return "json";
  const name = nameOf(path).toLowerCase();
  return BY_EXTENSION.get(name.includes(".") ? name.split(".").pop() : name) ?? null;
}
