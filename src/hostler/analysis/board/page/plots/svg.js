// Shapes of SVG from data, and the pen that writes a path. Text is always text.

const SPACE = "http://www.w3.org/2000/svg";

export function svg(tag, props = {}, ...children) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(props)) if (value !== null && value !== undefined && value !== false) made.setAttribute(name, String(value));
  made.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return made;
}

// What a canvas does for a line, as the text of a path.
export class PathPen {
  constructor() { this.parts = []; }

  moveTo(x, y) { this.parts.push(`M${x.toFixed(1)} ${y.toFixed(1)}`); }

  lineTo(x, y) { this.parts.push(`L${x.toFixed(1)} ${y.toFixed(1)}`); }

  get text() { return this.parts.join(""); }
}

// Colours and fonts of the page, for pictures that leave it.
export function tones(element = document.documentElement) {
  const style = getComputedStyle(element);
  const tone = (name) => style.getPropertyValue(name).trim();
  return { ink: tone("--ink"), muted: tone("--muted"), line: tone("--line"), soft: tone("--soft"), card: tone("--card"), accent: tone("--accent"), sans: tone("--sans") };
}

// Cuts a text to about so many pixels of small print, in its middle: long names differ at their ends.
export function cut(text, pixels, each = 6.6) {
  const most = Math.max(2, Math.floor(pixels / each)), letters = [...text];
  if (letters.length <= most) return text;
  const tail = Math.floor((most - 1) / 2);
  return `${letters.slice(0, most - 1 - tail).join("")}…${tail ? letters.slice(-tail).join("") : ""}`;
}
