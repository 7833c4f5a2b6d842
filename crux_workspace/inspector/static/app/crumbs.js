// A path whose every part leads to what it names.

import { visible } from "./format.js";
import { html } from "./lib.js";
import { fileHref } from "./route.js";

export function Breadcrumb({ path }) {
  const names = path.split("/").filter(Boolean);
  return html`<h1 class="unseen">${visible(path)}</h1><nav class="crumbs" aria-label="Path">
    <a href=${fileHref("/")}>/</a>
    ${names.map((name, index) => {
      const here = `/${names.slice(0, index + 1).join("/")}`;
      const last = index === names.length - 1;
      return html`<a key=${here} href=${fileHref(here)} aria-current=${last ? "page" : undefined}>${visible(name)}</a>${last
          ? null
          : html`<span class="slash" aria-hidden="true">/</span>`}`;
    })}
  </nav>`;
}
