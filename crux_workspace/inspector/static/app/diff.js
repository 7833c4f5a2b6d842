// The difference between two versions, in one column or side by side.

import { get } from "./api.js";
import { pieces, useColours } from "./code.js";
import { marked, pairedHunks, unifiedRows } from "./diff-rows.js";
import { languageOf } from "./format.js";
import { classes, html, useMemo } from "./lib.js";
import { useResource } from "./resource.js";
import { Empty, Problem, Waiting } from "./ui.js";

const MOST_COLOURED = 300_000;
const EVERYTHING = 10_000;

async function textOf(path, entry, signal) {
  if (!entry || entry.size > MOST_COLOURED || entry.operation === "delete") return null;
  const lines = entry.content_kind === "json" ? { start_line: 1 } : { max_inline_bytes: MOST_COLOURED };
  const found = await get("/v1/content", { path, version: entry.version, ...lines }, { signal });
  return typeof found.content === "string" ? found.content : null;
}

async function load(path, from, to, entries, whole, signal) {
  const range = { path, from_version: from, to_version: to, context_lines: whole ? EVERYTHING : 3 };
  const entry = (version) => entries.find((found) => found.version === version);
  const [diff, before, after] = await Promise.all([
    get("/v1/diff", range, { signal }),
    textOf(path, entry(from), signal).catch(() => null),
    textOf(path, entry(to), signal).catch(() => null),
  ]);
  return { diff, before, after };
}

// A line's colours, if those of its version are there and are for this very text.
const coloured = (line, version) => {
  const found = version?.[line.number - 1];
  return found && found.map(([, text]) => text).join("") === line.text ? found : [["", line.text]];
};

const Line = ({ line, version }) =>
  html`<code>${pieces(marked(coloured(line, version), line.ranges))}${line.ended ? null : html`<span class="cut"> no newline at the end</span>`}</code>`;

function Cell({ line, version }) {
  if (line === null) return html`<td class="text none" colspan="2"></td>`;
  return html`<td class=${classes("number", line.kind)}>${line.number}</td>
    <td class=${classes("text", line.kind)}><${Line} line=${line} version=${version} /></td>`;
}

const SIGNS = { add: "+", remove: "\u2212", context: "" };

const Unified = ({ rows, before, after }) =>
  unifiedRows(rows).map(
    (line) =>
      html`<tr>
        <td class=${classes("number", line.kind)}>${line.before}</td>
        <td class=${classes("number", line.kind)}>${line.after}</td>
        <td class=${classes("sign", line.kind)}>${SIGNS[line.kind]}</td>
        <td class=${classes("text", line.kind)}><${Line} line=${line} version=${line.kind === "remove" ? before : after} /></td>
      </tr>`,
  );

const Split = ({ rows, before, after }) =>
  rows.map(
    ({ left, right }) =>
      html`<tr>
        <${Cell} line=${left} version=${before} />
        <${Cell} line=${right} version=${after} />
      </tr>`,
  );

/** Show what changed from one version of a file to another; `entries` is its history. */
export function Diff({ path, from, to, entries, split, whole }) {
  const { data, error, loading, reload } = useResource(
    (signal) => load(path, from, to, entries, whole, signal),
    [path, from, to, whole],
  );
  const kind = entries.find((entry) => entry.version === to)?.content_kind;
  const language = languageOf(path, kind);
  const before = useColours(data?.before ?? null, language);
  const after = useColours(data?.after ?? null, language);
  const hunks = useMemo(() => (data ? pairedHunks(data.diff.hunks) : []), [data]);
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (loading) return html`<${Waiting} what="the difference" />`;
  if (hunks.length === 0) {
    return html`<${Empty} icon="check" title="No difference">Version ${from} and version ${to} hold the same text.<//>`;
  }
  const Rows = split ? Split : Unified;
  return html`<div class=${classes("diff", split && "split")} role="region" aria-label="Difference" tabindex="0">
    <table>
      ${split
        ? html`<colgroup><col class="narrow" /><col /><col class="narrow" /><col /></colgroup>`
        : html`<colgroup><col class="narrow" /><col class="narrow" /><col class="tiny" /><col /></colgroup>`}
      ${hunks.map(
        ({ hunk, rows }) =>
          html`<tbody>
            <tr class="hunk">
              <td colspan="4">
                @@ −${hunk.from_start},${hunk.from_lines} +${hunk.to_start},${hunk.to_lines} @@
              </td>
            </tr>
            <${Rows} rows=${rows} before=${before} after=${after} />
          </tbody>`,
      )}
    </table>
  </div>`;
}
