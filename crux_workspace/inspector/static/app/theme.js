// Dark or light: the system's choice, or the user's.

import { createStore, remember, remembered } from "./store.js";

const ORDER = ["system", "light", "dark"];

export const theme = createStore(ORDER.includes(remembered("theme")) ? remembered("theme") : "system");

const apply = (value) => {
  document.documentElement.dataset.theme = value;
};

theme.subscribe((value) => {
  remember("theme", value);
  apply(value);
});
apply(theme.get());

/** Switch from the system's to light, dark, and back. */
export const nextTheme = () => theme.set(ORDER[(ORDER.indexOf(theme.get()) + 1) % ORDER.length]);
