// Splits source text into coloured pieces, line by line, away from the page: a text that is slow to colour cannot hold it up.

import hljs from "../vendor/highlight.js";

/** What the highlighter emits, kept as lines of [class, text]; no markup is made. */
class Lines {
  constructor() {
    this.lines = [[]];
    this.scopes = [];
  }

  addText(text) {
    const scope = this.scopes.findLast((name) => name !== null) ?? "";
    text.split("\n").forEach((piece, index) => {
      if (index > 0) this.lines.push([]);
      if (piece !== "") this.lines.at(-1).push([scope, piece]);
    });
  }

  startScope(scope) {
    this.scopes.push(scope ? `hl-${scope.split(".")[0].replace(/[^a-z_-]/g, "")}` : null);
  }

  endScope() {
    this.scopes.pop();
  }

  openNode(scope) {
    this.startScope(scope);
  }

  closeNode() {
    this.endScope();
  }

  __addSublanguage(emitter) {
    emitter.lines.forEach((pieces, index) => {
      if (index > 0) this.lines.push([]);
      this.lines.at(-1).push(...pieces);
    });
  }

  finalize() {
    return true;
  }

  toHTML() {
    return "";
  }
}

hljs.configure({ __emitter: Lines });

addEventListener("message", ({ data: { id, text, language } }) => {
  const result = hljs.highlight(text, { language, ignoreIllegals: true });
  postMessage({ id, lines: result._emitter.lines });
});
