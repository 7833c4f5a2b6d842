// The Versions view: what the version markers of received traces tell, by file or by trace. It never needs a path:
// a file whose path is not known here is called by its hash.

import { BASE, get } from "./api.js";
import { plural, visible } from "./format.js";
import { html, useState } from "./lib.js";
import { useResource } from "./resource.js";
import { fileHref, useRoute } from "./route.js";
import { Button, Chip, Choice, Empty, Icon, Problem, Time, Waiting } from "./ui.js";

const SHOWN = 200;

const short = (id) => (id ? id.slice(0, 8) : "—");
const shortLabel = (label) => (/^hash:.{24,}$/.test(label) ? `${label.slice(0, 21)}…` : visible(label));

function Label({ file, version }) {
  if (file.path) return html`<a class="entry" href=${fileHref(file.path, { v: version })}>${visible(file.path)}</a>`;
  return html`<code class="hash" title=${file.label}>${shortLabel(file.label)}</code>`;
}

const TraceId = ({ id }) => html`<code class="trace-id" title=${id ? `trace ${id}` : "no trace"}>${short(id)}</code>`;

function ByFile({ files }) {
  return files.slice(0, SHOWN).map(
    (file) =>
      html`<section class="traced" key=${file.label} aria-label=${visible(file.label)}>
        <h2><${Icon} name=${file.path ? "file-text" : "key-round"} size="14" /> <${Label} file=${file} /> <span class="count">${plural(file.versions.length, "version")}</span></h2>
        <ol class="marks">
          ${file.versions.map(
            (mark) =>
              html`<li key=${`${mark.version} ${mark.span_id}`}>
                <${Chip} kind="version">v${mark.version}<//> <span class="operation">${mark.operation}</span>
                <${TraceId} id=${mark.trace_id} />
                <span class="quiet"><${Time} at=${mark.at} /></span>
              </li>`,
          )}
        </ol>
      </section>`,
  );
}

function traces(files) {
  const found = new Map();
  for (const file of files) {
    for (const mark of file.versions) {
      const key = mark.trace_id ?? "";
      if (!found.has(key)) found.set(key, []);
      found.get(key).push({ file, mark });
    }
  }
  const rows = [...found.entries()].map(([id, marks]) => ({ id, marks: marks.sort((a, b) => a.mark.at - b.mark.at) }));
  return rows.sort((a, b) => b.marks.at(-1).mark.at - a.marks.at(-1).mark.at);
}

function ByTrace({ files }) {
  return traces(files)
    .slice(0, SHOWN)
    .map(
      ({ id, marks }) =>
        html`<section class="traced" key=${id} aria-label=${`Trace ${short(id)}`}>
          <h2><${Icon} name="route" size="14" /> <code>${id || "no trace"}</code> <span class="count">${plural(marks.length, "version")}</span></h2>
          <ol class="marks">
            ${marks.map(
              ({ file, mark }) =>
                html`<li key=${`${file.label} ${mark.version}`}>
                  <${Chip} kind="version">v${mark.version}<//> <span class="operation">${mark.operation}</span>
                  <${Label} file=${file} version=${mark.version} />
                  <span class="quiet"><${Time} at=${mark.at} /></span>
                </li>`,
            )}
          </ol>
        </section>`,
    );
}

export function TracesView() {
  const { ns } = useRoute();
  const [by, setBy] = useState("file");
  const { data, error, loading, reload } = useResource((signal) => get("/v1/traces/versions", {}, { signal }).then((found) => found.files), [ns]);
  const shown = by === "file" ? data?.length : data && traces(data).length;
  return html`<div class="scroll">
    <header class="pane-head">
      <div class="pane-title">
        <h1>Traces</h1>
        <span class="quiet">versions, as the markers in received traces tell them</span>
        <span class="spring"></span>
        <${Choice}
          label="Group by"
          value=${by}
          onPick=${setBy}
          options=${[
            { value: "file", label: "By file" },
            { value: "trace", label: "By trace" },
          ]}
        />
        <${Button} icon="refresh-cw" label="Reload" onClick=${reload} />
      </div>
    </header>
    <div class="page">
      ${error && html`<${Problem} error=${error} retry=${reload} />`} ${loading && html`<${Waiting} what="the markers" />`}
      ${data?.length === 0 &&
      html`<${Empty} icon="activity" title="No version markers were received">
        Point an OpenTelemetry exporter at this service:
        <code class="block">OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=${location.origin}${BASE}v1/traces</code>
      <//>`}
      ${data?.length > 0 && (by === "file" ? html`<${ByFile} files=${data} />` : html`<${ByTrace} files=${data} />`)}
      ${shown > SHOWN && html`<p class="quiet">The first ${SHOWN} of ${shown} are shown.</p>`}
    </div>
  </div>`;
}
