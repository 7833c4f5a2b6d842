// Text with line numbers. Blocks of lines that are out of sight cost no layout, so that tens of thousands of lines scroll well.

import { highlight, plainLines } from "./highlight.js";
import { classes, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./lib.js";

const BLOCK = 100;
const MOST_SHOWN = 4000;

/** Return the lines' pieces: plain at once, coloured when the worker is done. */
export function useColours(text, language) {
  const plain = useMemo(() => (text === null ? null : plainLines(text)), [text]);
  const [coloured, setColoured] = useState({ text: null, lines: null });
  useEffect(() => {
    let wanted = true;
    if (text !== null) {
      highlight(text, language).then((lines) => wanted && setColoured({ text, lines }));
    }
    return () => {
      wanted = false;
    };
  }, [text, language]);
  return coloured.text === text && coloured.lines !== null ? coloured.lines : plain;
}

function shortened(pieces) {
  let left = MOST_SHOWN;
  const shown = [];
  for (const [scope, text] of pieces) {
    if (left <= 0) break;
    shown.push([scope, text.slice(0, left)]);
    left -= text.length;
  }
  const more = -left;
  return more > 0 ? [shown, more] : [shown, 0];
}

/** Draw the pieces of one line. */
export function pieces(line) {
  const [shown, more] = shortened(line);
  const parts = shown.map(([scope, text]) => {
    const drawn = text.endsWith("\r") ? text.slice(0, -1) : text;
    return scope ? html`<span class=${scope}>${drawn}</span>` : drawn;
  });
  if (more > 0) parts.push(html`<span class="cut">… ${more.toLocaleString("en-US")} more characters</span>`);
  return parts;
}

function Block({ lines, first, marked }) {
  return html`<div class="code-block" style=${`--lines:${lines.length}`}>
    ${lines.map((line, index) => {
      const number = first + index;
      return html`<div class=${classes("line", number === marked && "marked")} data-line=${number}>
        <span class="line-number" aria-hidden="true">${number}</span><code>${pieces(line)}</code>
      </div>`;
    })}
  </div>`;
}

/** Show text; `first` is the number of its first line, `line` the one to scroll to and mark. */
export function Code({ text, language, first = 1, line = null, wrap = false, label }) {
  const ended = text.endsWith("\n") ? text.slice(0, -1) : text;
  const lines = useColours(ended, language);
  const root = useRef(null);
  useLayoutEffect(() => {
    if (line === null) return;
    root.current.querySelector(`[data-line="${Number(line)}"]`)?.scrollIntoView({ block: "center" });
  }, [text, line]);
  const blocks = useMemo(() => {
    const starts = Array.from({ length: Math.ceil(lines.length / BLOCK) }, (_, index) => index * BLOCK);
    return starts.map(
      (start) => html`<${Block} key=${start} lines=${lines.slice(start, start + BLOCK)} first=${first + start} marked=${line} />`,
    );
  }, [lines, first, line]);
  const digits = String(first + lines.length).length;
  return html`<div
    class=${classes("code", wrap && "wrap")}
    style=${`--digits:${digits}`}
    ref=${root}
    role="region"
    aria-label=${label}
    tabindex="0"
  >
    ${blocks}
  </div>`;
}
