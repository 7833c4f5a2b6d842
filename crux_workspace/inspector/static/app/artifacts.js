// What was published or is about to be: the pinned version, and how far the file has gone on since.

import { get } from "./api.js";
import { bytes, plural, visible } from "./format.js";
import { html, useState } from "./lib.js";
import { useResource } from "./resource.js";
import { fileHref, useRoute } from "./route.js";
import { Button, Chip, Choice, Empty, Problem, Time, Waiting } from "./ui.js";

const PAGE = 100;

function Pin({ artifact }) {
  if (artifact.status !== "final") return html`<span class="quiet">draft at v${artifact.head_version}</span>`;
  const behind = artifact.head_version - artifact.version;
  return html`<strong>v${artifact.version}</strong> ${" "}
    ${behind > 0
      ? html`<a class="behind" href=${fileHref(artifact.path, { show: "diff", from: artifact.version })} title="What changed since">
          ${plural(behind, "newer version")}
        </a>`
      : html`<span class="quiet"> newest</span>`}`;
}

function Made({ by }) {
  if (!by) return null;
  const sources = by.sources?.length ? ` from ${plural(by.sources.length, "source")}` : "";
  return html`<span class="quiet" title=${JSON.stringify(by, null, 2)}>${by.run_id ? visible(String(by.run_id)).slice(0, 24) : "a run"}${sources}</span>`;
}

export function ArtifactsView() {
  const route = useRoute();
  const [status, setStatus] = useState("all");
  const [count, setCount] = useState(PAGE);
  const { data, error, loading, reload } = useResource(
    (signal) => get("/v1/artifacts", { status: status === "all" ? undefined : status, limit: count + 1 }, { signal }),
    [route.ns, status, count],
    () => true,
  );
  const artifacts = data?.slice(0, count) ?? [];
  return html`<div class="scroll">
    <header class="pane-head">
      <div class="pane-title">
        <h1>Artifacts</h1>
        <span class="spring"></span>
        <${Choice}
          label="Status"
          value=${status}
          onPick=${setStatus}
          options=${[
            { value: "all", label: "All" },
            { value: "final", label: "Final" },
            { value: "draft", label: "Draft" },
          ]}
        />
      </div>
    </header>
    <div class="page">
      ${error && html`<${Problem} error=${error} retry=${reload} />`} ${loading && html`<${Waiting} what="the artifacts" />`}
      ${data &&
      artifacts.length === 0 &&
      html`<${Empty} icon="package" title="No artifacts">
        A file becomes one when it is written with a status or kind, or published:
        <code class="block">crux-workspace finalize /outputs/report.md --kind report</code>
      <//>`}
      ${artifacts.length > 0 &&
      html`<table class="list">
        <thead>
          <tr>
            <th class="wide">Path</th>
            <th>Status</th>
            <th>Kind</th>
            <th>Published</th>
            <th>Made by</th>
            <th class="figure">Size</th>
            <th class="figure">Changed</th>
          </tr>
        </thead>
        <tbody>
          ${artifacts.map(
            (artifact) =>
              html`<tr key=${artifact.path}>
                <td class="wide">
                  <a class="entry" href=${fileHref(artifact.path, { v: artifact.version === artifact.head_version ? undefined : artifact.version })}>
                    ${visible(artifact.path)}
                  </a>
                </td>
                <td><${Chip} kind=${artifact.status}>${artifact.status}<//></td>
                <td>${artifact.kind ? visible(artifact.kind) : ""}</td>
                <td><${Pin} artifact=${artifact} /></td>
                <td><${Made} by=${artifact.produced_by} /></td>
                <td class="figure">${bytes(artifact.size)}</td>
                <td class="figure"><${Time} at=${artifact.updated_at} /></td>
              </tr>`,
          )}
        </tbody>
      </table>`}
      ${data?.length > count && html`<div class="more"><${Button} icon="plus" onClick=${() => setCount(count + PAGE)}>Load more<//></div>`}
    </div>
  </div>`;
}
