// How wide a number is after its decimal point, so that points stand under each other: a number is then one text, which costs half of two parts in boxes of their own.

import { h } from "./dom.js";
import { fraction } from "./words.js";

const SIGNS = [..."0.e-"], NONE = [0, 0];
const known = new Map(); // a fraction with 0 for every digit → ems
const ems = measured(); // of each sign, while the page is still empty; a digit is as wide as any other

function measured() {
  const probes = SIGNS.map((sign) => h("span", {}, sign.repeat(8)));
  const box = h("div", { class: "num sr", "aria-hidden": "true" }, probes);
  document.body.append(box);
  const size = parseFloat(getComputedStyle(box).fontSize);
  const found = new Map(SIGNS.map((sign, n) => [sign, probes[n].getBoundingClientRect().width / 8 / size]));
  box.remove();
  return found;
}

// What follows the digits before the decimal point of a text, in ems: [as it is, as if all of it were digits].
export function tail(text) {
  const end = fraction(text).replace(/\d/g, "0");
  if (!end) return NONE;
  if (!known.has(end)) known.set(end, [[...end].reduce((sum, sign) => sum + ems.get(sign), 0), end.length * ems.get("0")]);
  return known.get(end);
}
