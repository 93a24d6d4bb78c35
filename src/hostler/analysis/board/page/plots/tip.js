// What is said of the thing that one points at.

import { h } from "../dom.js";
import { text } from "../words.js";
import { cut } from "./svg.js";

const ROWS = 14;

export function swatch(colour) {
  const made = h("i", { class: "swatch" });
  made.style.background = colour;
  return made;
}

// A value with all its digits.
export const inFull = (value) => (typeof value === "number" ? String(value) : text(value));

// A name and lines of [what, text].
export function told(colour, name, rows) {
  const line = ([what, words]) => [h("dt", {}, cut(what, 160)), h("dd", {}, cut(words, 240))];
  return [h("div", { class: "who" }, swatch(colour), h("strong", {}, name)),
    h("dl", {}, rows.slice(0, ROWS).map(line), rows.length > ROWS ? line(["…", `${rows.length - ROWS} more`]) : null)];
}

// Beside the pointer, inside the plot.
export function placeTip(tip, plot, x, y) {
  const right = x + 18 + tip.offsetWidth > plot.clientWidth;
  tip.style.left = `${Math.max(4, right ? x - tip.offsetWidth - 14 : x + 18)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, plot.clientHeight - tip.offsetHeight - 4))}px`;
}
