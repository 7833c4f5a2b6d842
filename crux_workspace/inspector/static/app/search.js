// Search in texts: by line, literal or by regular expression, with what was found marked.

import { get } from "./api.js";
import { number, plural, visible } from "./format.js";
import { html, useEffect, useRef, useState } from "./lib.js";
import { useResource } from "./resource.js";
import { adjust, fileHref, useRoute } from "./route.js";
import { Empty, Icon, Problem, Waiting } from "./ui.js";

const MOST = 300;
const TYPING_MS = 250;

const byFile = (matches) => {
  const files = new Map();
  for (const match of matches) {
    if (!files.has(match.path)) files.set(match.path, []);
    files.get(match.path).push(match);
  }
  return [...files.entries()];
};

/** Mark the occurrences of a literal query; where a regular expression matched is only known by its column. */
function Marked({ text, query, ignoreCase, regex }) {
  if (regex || query === "") return text;
  const where = ignoreCase ? text.toLowerCase() : text;
  const what = ignoreCase ? query.toLowerCase() : query;
  if (where.length !== text.length) return text;
  const parts = [];
  let at = 0;
  for (let found = where.indexOf(what); found >= 0; found = where.indexOf(what, at)) {
    parts.push(text.slice(at, found), html`<mark>${text.slice(found, found + what.length)}</mark>`);
    at = found + what.length;
  }
  return [...parts, text.slice(at)];
}

function Found({ path, matches, query, ignoreCase, regex }) {
  const lines = [...new Map(matches.map((match) => [match.line, match])).values()];
  return html`<section class="found" aria-label=${visible(path)}>
    <h2><a class="entry" href=${fileHref(path)}><${Icon} name="file-text" size="14" /><span>${visible(path)}</span></a> <span class="count">${matches.length}</span></h2>
    <ol>
      ${lines.map(
        (match) =>
          html`<li key=${match.line}>
            <a href=${fileHref(path, { line: match.line })}>
              <span class="line-number">${match.line}</span>
              <code><${Marked} text=${match.text.trimEnd()} query=${query} ignoreCase=${ignoreCase} regex=${regex} /></code>
            </a>
          </li>`,
      )}
    </ol>
  </section>`;
}

function Toggle({ on, label, title, onPick }) {
  return html`<button type="button" class="button toggle" aria-pressed=${on} aria-label=${title} title=${title} onClick=${onPick}>${label}</button>`;
}

export function SearchView() {
  const route = useRoute();
  const [text, setText] = useState(route.q ?? "");
  const [scope, setScope] = useState(route.in ?? "");
  const box = useRef(null);
  const ignoreCase = route.case !== "yes";
  const regex = route.regex === "yes";

  useEffect(() => box.current.focus(), []);
  useEffect(() => {
    const timer = setTimeout(() => adjust({ q: text || undefined, in: scope || undefined }, { replace: true }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, scope]);

  const query = route.q ?? "";
  const { data, error, loading, reload } = useResource(
    async (signal) =>
      query === ""
        ? { matches: [], truncated: false }
        : get("/v1/grep", { query, path: route.in, ignore_case: ignoreCase, regex, max_results: MOST }, { signal }),
    [route.ns, query, route.in, ignoreCase, regex],
    () => query !== "",
  );
  const files = data ? byFile(data.matches) : [];
  return html`<div class="scroll">
    <header class="pane-head">
      <form class="search-form" role="search" onSubmit=${(event) => event.preventDefault()}>
        <${Icon} name="search" />
        <input
          ref=${box}
          type="search"
          aria-label="Search for"
          placeholder="Search in files …"
          value=${text}
          onInput=${(event) => setText(event.target.value)}
          spellcheck=${false}
          autocomplete="off"
        />
        <${Toggle} on=${!ignoreCase} label="Aa" title="Match case" onPick=${() => adjust({ case: ignoreCase ? "yes" : undefined }, { replace: true })} />
        <${Toggle} on=${regex} label=".*" title="Regular expression" onPick=${() => adjust({ regex: regex ? undefined : "yes" }, { replace: true })} />
        <input
          class="scope"
          aria-label="Only in"
          placeholder="everywhere, or a path or glob"
          value=${scope}
          onInput=${(event) => setScope(event.target.value)}
          spellcheck=${false}
          autocomplete="off"
        />
      </form>
    </header>
    <div class="page">
      ${error && html`<${Problem} error=${error} retry=${reload} />`} ${loading && query !== "" && html`<${Waiting} what="matches" />`}
      ${query === "" && html`<${Empty} icon="search" title="Search in texts">By line, in all files or in those below a path. Try a word, or <code>.*</code> for a regular expression.<//>`}
      ${data && query !== "" && files.length === 0 && html`<${Empty} icon="search" title="Nothing found">No line holds it${ignoreCase ? "" : " in this case"}.<//>`}
      ${files.length > 0 &&
      html`<p class="quiet" role="status">
        ${plural(data.matches.length, "match", "matches")} in ${plural(files.length, "file")}${data.truncated ? `; there are more than the first ${number(MOST)}` : ""}
      </p>`}
      ${files.map(
        ([path, matches]) => html`<${Found} key=${path} path=${path} matches=${matches} query=${query} ignoreCase=${ignoreCase} regex=${regex} />`,
      )}
    </div>
  </div>`;
}
