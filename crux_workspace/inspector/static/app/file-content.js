// What a version holds: text with colours, a picture, or facts about bytes. Nothing of it is ever markup.

import { blob, downloadAddress, get, head } from "./api.js";
import { Code } from "./code.js";
import { bytes, languageOf, number } from "./format.js";
import { html, useEffect, useMemo, useState } from "./lib.js";
import { useResource } from "./resource.js";
import { Button, Choice, Empty, Icon, Problem, Waiting } from "./ui.js";

const FIRST_BYTES = 128 * 1024;
const LINES = 3000;
const AROUND = 300;
const DUMPED = 512;
const MOST_PICTURE = 20 * 1024 * 1024;
const RASTER = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"];
const DRAWING = "image/svg+xml";

const pictured = (of) => RASTER.includes(of.mime_type) && of.size <= MOST_PICTURE;

/** Whether a version is shown as lines of text. */
export const isText = (of) => of.content_kind !== "binary" && !pictured(of);

/** Show a version of a file. */
export function Content({ path, file, entry, version, wrap, line }) {
  const of = entry ?? file;
  if (entry?.operation === "delete") {
    return html`<${Empty} icon="file-x" title=${`Deleted in version ${version}`}>Older versions are in the history.<//>`;
  }
  const at = version === file.version ? undefined : version;
  if (pictured(of)) return html`<${Picture} path=${path} version=${at} of=${of} />`;
  if (of.content_kind === "binary") return html`<${Bytes} path=${path} version=${at} of=${of} />`;
  if (of.mime_type === DRAWING) return html`<${Drawing} path=${path} version=${at} of=${of} wrap=${wrap} line=${line} />`;
  return html`<${Text} path=${path} version=${at} of=${of} wrap=${wrap} line=${line} />`;
}

async function firstLines(path, version, of, signal) {
  const window = of.content_kind === "json" ? { start_line: 1, end_line: LINES } : { max_inline_bytes: FIRST_BYTES };
  const found = await get("/v1/content", { path, version, ...window }, { signal });
  return { text: found.content, first: 1, total: found.total_lines ?? null, truncated: found.truncated };
}

const linesIn = (text) => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

async function loadText(path, version, of, line, signal) {
  const start = await firstLines(path, version, of, signal);
  if (!start.truncated || line === null || line <= linesIn(start.text) - 1) return start;
  const window = { start_line: Math.max(1, line - AROUND), end_line: line + AROUND };
  const found = await get("/v1/content", { path, version, ...window }, { signal });
  return { text: found.content, first: window.start_line, total: found.total_lines, truncated: true };
}

async function moreOf(path, version, of, have, signal) {
  const last = have.first + linesIn(have.text) - 1;
  if (of.content_kind === "json" || have.first > 1) {
    const window = { start_line: last + 1, end_line: last + LINES };
    const found = await get("/v1/content", { path, version, ...window }, { signal });
    return { ...have, text: have.text + found.content, truncated: last + LINES < found.total_lines };
  }
  const offset = new TextEncoder().encode(have.text).length;
  const window = { offset, max_inline_bytes: FIRST_BYTES };
  const found = await get("/v1/content", { path, version, ...window }, { signal });
  const text = have.text + found.content;
  return { ...have, text, truncated: new TextEncoder().encode(text).length < of.size };
}

// The first lines of a text, and how many they are; thousands more would be drawn for nobody.
function beginning(text, lines) {
  let at = -1;
  let count = 0;
  do {
    at = text.indexOf("\n", at + 1);
    count += 1;
  } while (at >= 0 && count < lines);
  return at < 0 || at === text.length - 1 ? [text, linesIn(text)] : [text.slice(0, at + 1), count];
}

function Text({ path, version, of, wrap, line }) {
  const { data, error, loading, reload } = useResource(
    (signal) => loadText(path, version, of, line, signal),
    [path, version, of.sha256, line],
  );
  const [more, setMore] = useState({ of: null, data: null, lines: LINES, busy: false, error: null });
  const mine = more.of === data;
  const have = mine && more.data ? more.data : data;
  const most = mine ? more.lines : Math.max(LINES, line ?? 0);
  const [text, shown] = useMemo(() => (have ? beginning(have.text, most) : ["", 0]), [have, most]);
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (loading) return html`<${Waiting} what="the text" />`;
  if (have.text === "") return html`<${Empty} icon="file" title="An empty file">It holds no bytes.<//>`;
  const buffered = text.length < have.text.length;

  async function loadMore() {
    const enough = !have.truncated || linesIn(have.text) >= most + LINES;
    const state = { of: data, data: have, lines: most + LINES, busy: !enough, error: null };
    setMore(state);
    if (enough) return;
    try {
      setMore({ ...state, data: await moreOf(path, version, of, have), busy: false });
    } catch (failure) {
      setMore({ ...state, busy: false, error: failure });
    }
  }

  const range = `lines ${number(have.first)} to ${number(have.first + shown - 1)}${have.total ? ` of ${number(have.total)}` : ""}`;
  return html`<${Code} text=${text} language=${languageOf(path, of.content_kind)} first=${have.first} line=${line} wrap=${wrap} label="Text of the file" />
    ${(have.truncated || buffered) &&
    html`<div class="more">
      <span>Shown: ${range}.</span>
      <${Button} icon="plus" busy=${more.busy} onClick=${loadMore}>Load more<//>
      ${have.first > 1 && html`<span class="quiet">The file starts above.</span>`}
      ${more.error && html`<span class="bad">${more.error.message}</span>`}
    </div>`}`;
}

function usePicture(path, version, of, type) {
  const { data, error, reload } = useResource(() => blob({ path, version }, type), [path, version, of.sha256]);
  const [address, setAddress] = useState(null);
  useEffect(() => {
    if (!data) return undefined;
    const made = URL.createObjectURL(data);
    setAddress(made);
    return () => {
      setAddress(null);
      URL.revokeObjectURL(made);
    };
  }, [data]);
  return { address, error, reload };
}

function Picture({ path, version, of }) {
  const { address, error, reload } = usePicture(path, version, of, of.mime_type);
  if (error) return html`<${Problem} error=${error} retry=${reload} />`;
  if (address === null) return html`<${Waiting} what="the picture" />`;
  return html`<${Drawn} key=${address} address=${address} of=${of} />`;
}

function Drawn({ address, of }) {
  const [size, setSize] = useState(null);
  const [broken, setBroken] = useState(false);
  if (broken) {
    return html`<${Empty} icon="image" title="Not a picture that the browser can draw">
      Its MIME type says ${of.mime_type}; its ${bytes(of.size)} are not that.
    <//>`;
  }
  return html`<figure class="picture" role="region" aria-label="Picture" tabindex="0">
    <img
      src=${address}
      alt="The picture that the file holds"
      onLoad=${(event) => setSize([event.target.naturalWidth, event.target.naturalHeight])}
      onError=${() => setBroken(true)}
    />
    <figcaption class="quiet">${size && `${size[0]} × ${size[1]} · `}${bytes(of.size)}</figcaption>
  </figure>`;
}

// A drawing is text that may hold scripts. As an <img> a browser runs none of them and loads nothing that it names.
function Drawing({ path, version, of, wrap, line }) {
  const [drawn, setDrawn] = useState(false);
  return html`<div class="toolbar second">
      <${Choice}
        label="Form"
        value=${drawn ? "drawn" : "source"}
        onPick=${(value) => setDrawn(value === "drawn")}
        options=${[
          { value: "source", label: "Source" },
          { value: "drawn", label: "Drawing" },
        ]}
      />
    </div>
    ${drawn ? html`<${Picture} path=${path} version=${version} of=${of} />` : html`<${Text} path=${path} version=${version} of=${of} wrap=${wrap} line=${line} />`}`;
}

const hex = (value) => value.toString(16).padStart(2, "0");
const printable = (value) => (value >= 32 && value < 127 ? String.fromCharCode(value) : "·");

function dump(data) {
  const rows = [];
  for (let at = 0; at < data.length; at += 16) {
    const row = [...data.subarray(at, at + 16)];
    const left = row.slice(0, 8).map(hex).join(" ");
    const right = row.slice(8).map(hex).join(" ");
    rows.push(`${at.toString(16).padStart(8, "0")}  ${left.padEnd(23)}  ${right.padEnd(23)}  ${row.map(printable).join("")}`);
  }
  return rows.join("\n");
}

function Bytes({ path, version, of }) {
  const { data, error, loading, reload } = useResource(
    async () => (of.size === 0 ? new Uint8Array() : head({ path, version }, DUMPED)),
    [path, version, of.sha256],
  );
  return html`<div class="binary">
    <dl class="properties">
      <dt>Type</dt>
      <dd>${of.mime_type}</dd>
      <dt>Size</dt>
      <dd>${bytes(of.size)} (${number(of.size)} bytes)</dd>
      ${of.sha256 && html`<dt>SHA-256</dt><dd><code>${of.sha256}</code></dd>`}
    </dl>
    <p><a class="button" href=${downloadAddress({ path, version })} download><${Icon} name="download" /><span>Download</span></a></p>
    ${error && html`<${Problem} error=${error} retry=${reload} />`}
    ${loading && html`<${Waiting} what="the first bytes" />`}
    ${data?.length > 0 &&
    html`<h3>First ${number(data.length)} bytes</h3>
      <pre class="hex" tabindex="0" role="region" aria-label="First bytes">${dump(data)}</pre>`}
  </div>`;
}
