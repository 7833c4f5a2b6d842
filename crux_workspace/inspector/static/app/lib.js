// The view library under one name: components are functions, markup is a tagged template, text is always a text node.

import { h, render, createContext, Fragment } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { h, render, createContext, Fragment };
export {
  useCallback,
  useContext,
  useEffect,
  useErrorBoundary,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../vendor/preact-hooks.js";

export const html = htm.bind(h);

/** Join class names, leaving out what is false. */
export const classes = (...names) => names.filter(Boolean).join(" ");
