// What the namespace holds, against what it may hold, and what the workspace is.

import { get, session } from "./api.js";
import { bytes, number, plural, visible } from "./format.js";
import { classes, html } from "./lib.js";
import { useResource } from "./resource.js";
import { fileHref, useRoute } from "./route.js";
import { Chip, Icon, Problem, Waiting } from "./ui.js";

const NEARLY = 0.8;

function Meter({ name, used, limit, show }) {
  const share = limit ? Math.min(1, used / limit) : 0;
  return html`<div class="meter-card">
    <h3>${name}</h3>
    <p class="meter-figure"><strong>${show(used)}</strong>${limit ? html` <span class="quiet">of ${show(limit)}</span>` : ""}</p>
    ${limit
      ? html`<div
          class=${classes("meter", share >= 1 ? "full" : share >= NEARLY && "nearly")}
          role="meter"
          aria-label=${name}
          aria-valuemin="0"
          aria-valuemax=${limit}
          aria-valuenow=${used}
          aria-valuetext=${`${show(used)} of ${show(limit)}`}
        >
          <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect width=${share * 100} height="6" /></svg>
        </div>`
      : html`<p class="quiet">no limit</p>`}
  </div>`;
}

function Mounts({ mounts }) {
  return html`<table class="list">
    <thead>
      <tr>
        <th>Mount</th>
        <th>Access</th>
        <th class="wide">What it is for</th>
      </tr>
    </thead>
    <tbody>
      ${mounts.map(
        (mount) =>
          html`<tr key=${mount.path}>
            <td><a class="entry" href=${fileHref(mount.path)}><${Icon} name="folder" size="15" /><span>${visible(mount.path)}</span></a></td>
            <td><${Chip}>${mount.access === "readwrite" ? "read and write" : "read"}<//></td>
            <td class="wide quiet">${mount.description ?? ""}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

const duration = (ms) => (ms === null || ms === undefined ? "for ever" : `${number(Math.round(ms / 60_000))} min`);

export function UsageView() {
  const { ns } = useRoute();
  const rights = session.get();
  const usage = useResource(
    async (signal) => (rights.partial ? null : get("/v1/usage", {}, { signal })),
    [ns],
    () => !rights.partial,
  );
  const about = useResource((signal) => get("/v1/describe", { namespace: null }, { signal }), [ns]);
  const { data } = usage;
  const limits = about.data?.limits ?? {};
  return html`<div class="scroll">
    <header class="pane-head">
      <div class="pane-title"><h1>Usage</h1></div>
    </header>
    <div class="page">
      ${usage.error && html`<${Problem} error=${usage.error} retry=${usage.reload} />`} ${usage.loading && html`<${Waiting} what="the usage" />`}
      ${rights.partial && html`<p class="quiet">How much the namespace holds is told to who sees all of its mounts.</p>`}
      ${data &&
      html`<div class="meters">
        <${Meter} name="Live content" used=${data.live_bytes} limit=${data.max_namespace_bytes} show=${bytes} />
        <${Meter} name="Live files" used=${data.live_files} limit=${limits.max_files} show=${number} />
        <${Meter} name="History" used=${data.history_bytes} limit=${limits.max_history_bytes} show=${bytes} />
        <${Meter} name="Versions kept" used=${data.versions} limit=${null} show=${number} />
      </div>`}
      <h2>Mounts</h2>
      <${Mounts} mounts=${rights.mounts} />
      ${about.data &&
      html`<h2>Workspace</h2>
        <dl class="properties">
          <dt>Name</dt>
          <dd>${visible(rights.workspace)}</dd>
          <dt>You</dt>
          <dd>${rights.name ? visible(rights.name) : "without a token"}, ${rights.write ? "may write" : "may only read"}${rights.partial ? ", sees a part of the mounts" : ""}</dd>
          <dt>Largest file</dt>
          <dd>${limits.max_file_bytes ? bytes(limits.max_file_bytes) : "no limit"}</dd>
          <dt>Files are kept</dt>
          <dd>${duration(about.data.retention?.ttl_ms)}</dd>
          ${about.data.tools && html`<dt>Tools for models</dt><dd>${plural(toolNames(about.data.tools).length, "tool")}: <code>${toolNames(about.data.tools).join(", ")}</code></dd>`}
        </dl>`}
    </div>
  </div>`;
}

const toolNames = (tools) => (Array.isArray(tools) ? tools : Object.values(tools)).flat().filter((name) => typeof name === "string");
