// The frame of a plot: lines, marks and titles around it, as SVG.

import { cut, svg } from "./svg.js";

export const SMALL = 12; // pixels of the print on an axis

// How much room the marks of the axis on the left need.
export const roomFor = (marks, most = 120) => Math.min(most, Math.max(34, 16 + 6.8 * Math.max(0, ...marks.map((mark) => mark.text.length))));

// box: {left, right, top, bottom}; x and y: {marks, title}.
export function frame(box, x, y, tone, width) {
  const wide = box.right - box.left;
  const upright = (mark) => [
    svg("line", { x1: box.left, x2: box.right, y1: mark.at, y2: mark.at, stroke: tone.line, "shape-rendering": "crispEdges" }),
    label(cut(mark.text, box.left - 10), { x: box.left - 8, y: mark.at + 4, "text-anchor": "end", fill: tone.muted }, mark.text),
  ];
  const marks = thinned(x.marks);
  const apart = (n) => Math.min(n ? marks[n].at - marks[n - 1].at : wide, n + 1 < marks.length ? marks[n + 1].at - marks[n].at : wide);
  const across = (mark, n) => {
    const text = cut(mark.text, Math.max(apart(n) - 6, 24));
    const half = text.length * 3.3;
    const anchor = mark.at + half > width ? "end" : mark.at - half < 0 ? "start" : "middle";
    return [
      svg("line", { x1: mark.at, x2: mark.at, y1: box.bottom, y2: box.bottom + 4, stroke: tone.muted }),
      label(text, { x: anchor === "end" ? Math.min(width - 1, mark.at + half) : mark.at, y: box.bottom + 17, "text-anchor": anchor, fill: tone.muted, "data-mark": n }, mark.text),
    ];
  };
  return [
    spaced(y.marks.filter((mark) => mark.at >= box.top - 1 && mark.at <= box.bottom + 1)).map(upright),
    svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, stroke: tone.muted, "shape-rendering": "crispEdges" }),
    marks.map(across),
    x.title ? label(cut(x.title, wide), { x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle", fill: tone.muted }, x.title) : null,
    y.title ? label(cut(y.title, box.bottom - box.top), { transform: `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle", fill: tone.muted }, y.title) : null,
  ];
}

// Small print; what was cut is whole where one points at it.
export function label(text, props, whole = text) {
  return svg("text", { "font-size": SMALL, ...props }, text, whole === text ? null : svg("title", {}, whole));
}

// Marks one above the other, with room for a line of text each.
export function spaced(marks) {
  const found = [];
  for (const mark of [...marks].sort((a, b) => b.at - a.at)) if (!found.length || found.at(-1).at - mark.at >= SMALL + 1) found.push(mark);
  return found;
}

// Marks of which no two lie over each other: each needs the room of its text, or of a few letters of it.
function thinned(marks) {
  const found = [];
  for (const mark of [...marks].sort((a, b) => a.at - b.at)) {
    const last = found.at(-1), room = last ? (Math.min(70, last.text.length * 6.8) + Math.min(70, mark.text.length * 6.8)) / 2 + 8 : 0;
    if (!last || mark.at - last.at >= room) found.push(mark);
  }
  return found;
}
