// Parallel coordinates: an axis for each parameter and the metric, a line for each run. Drag along an axis to keep the runs that pass there; by keys, the arrows move what is
// kept, with shift they widen and narrow it, Escape keeps all.

import { h } from "../dom.js";
import { count, number } from "../words.js";
import { label, spaced } from "./frame.js";
import { cut, PathPen, svg, tones } from "./svg.js";
import { placeTip, told } from "./tip.js";

const TOP = 44, BOTTOM = 14, EACH = 118, LEFT = 64, RIGHT = 64;

export class Parallel {
  // changed(kept): how many of the runs are kept has changed.
  constructor({ label, open, changed }) {
    Object.assign(this, { label, open, changed, axes: [], lines: [], brushes: new Map(), near: null });
    this.back = svg("svg", { class: "frame", "aria-hidden": "true" });
    this.canvas = h("canvas", { role: "img", "aria-label": label });
    this.over = svg("svg", { class: "over", "aria-hidden": "true" });
    this.handles = h("div", { class: "handles" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.plot = h("div", { class: "chart parallel" }, this.back, this.canvas, this.over, this.handles, this.tip);
    this.element = h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `${label}: axes` }, this.plot);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.plot.addEventListener("pointermove", (event) => this.hover(event));
    this.plot.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", () => { if (this.near) this.open?.(this.near.id); });
  }

  // axes: [Axis with a key]; lines: [{id, name, at: {key: value}, colour, facts}], the best last.
  set(axes, lines) {
    this.shape = axes.map((axis) => axis.key).join("\u0000");
    for (const key of [...this.brushes.keys()]) if (!axes.some((axis) => axis.key === key)) this.brushes.delete(key);
    Object.assign(this, { axes, lines });
    this.plot.style.minWidth = `${LEFT + RIGHT + EACH * (axes.length - 1)}px`;
    this.draw();
  }

  // Whether a run passes every axis where something is kept.
  keeps(line) {
    for (const [key, [from, to]] of this.brushes) {
      const axis = this.axes.find((one) => one.key === key);
      const y = axis && line.at[key] !== undefined ? this.part(axis, line.at[key]) : NaN;
      if (!(y >= from && y <= to)) return false;
    }
    return true;
  }

  get kept() { return this.lines.filter((line) => this.keeps(line)); }

  draw() {
    this.asked ||= requestAnimationFrame(() => { this.asked = 0; this.paint(); });
  }

  // Where a value lies: 0 at the foot of its axis, 1 at the top.
  part(axis, value) { return axis.over(0, 1000).at(value) / 1000; }

  x(n, width) { return this.axes.length > 1 ? LEFT + ((width - LEFT - RIGHT) * n) / (this.axes.length - 1) : width / 2; }

  y(part, height) { return height - BOTTOM - part * (height - TOP - BOTTOM); }

  points(line, width, height) {
    return this.axes.map((axis, n) => (line.at[axis.key] === undefined ? null : [this.x(n, width), this.y(this.part(axis, line.at[axis.key]), height)]));
  }

  trace(pen, line, width, height) {
    let down = false;
    for (const place of this.points(line, width, height)) {
      if (place) down ? pen.lineTo(...place) : pen.moveTo(...place);
      down = Boolean(place);
    }
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    const ratio = window.devicePixelRatio || 1, tone = tones(this.canvas);
    Object.assign(this.canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const ink = this.canvas.getContext("2d");
    ink.scale(ratio, ratio);
    ink.lineWidth = this.lines.length > 200 ? 1 / ratio : 1.4;
    const faint = this.lines.filter((line) => !this.keeps(line)), kept = this.kept;
    for (const [lines, alpha] of [[faint, 0.14], [kept, this.lines.length > 200 ? 0.6 : 0.85]]) for (const line of lines) {
      ink.globalAlpha = alpha;
      ink.strokeStyle = lines === faint ? tone.muted : line.colour;
      ink.beginPath();
      this.trace(ink, line, width, height);
      ink.stroke();
    }
    this.back.replaceChildren();
    this.over.replaceChildren(...this.framed(width, height, tone));
    this.grips(width, height);
    this.canvas.setAttribute("aria-label", `${this.label}: ${count(kept.length, "run")} of ${this.lines.length} kept`);
    this.changed?.(kept);
  }

  framed(width, height, tone) {
    const room = this.axes.length > 1 ? (width - LEFT - RIGHT) / (this.axes.length - 1) : width;
    return this.axes.flatMap((axis, n) => {
      const x = this.x(n, width), made = axis.over(this.y(0, height), this.y(1, height));
      const brush = this.brushes.get(axis.key);
      const halo = { stroke: tone.card, "stroke-width": 3, "paint-order": "stroke" };
      return [
        svg("line", { x1: x, x2: x, y1: this.y(0, height), y2: this.y(1, height), stroke: tone.muted }),
        this.title(axis.title, x, room, width, tone),
        spaced(axis.marks(made, Math.max(3, height / 60))).map((mark) => [svg("line", { x1: x - 3, x2: x + 3, y1: mark.at, y2: mark.at, stroke: tone.muted }),
          label(cut(mark.text, n === this.axes.length - 1 ? RIGHT - 10 : room - 14), { x: x + 7, y: mark.at + 4, fill: tone.ink, ...halo }, mark.text)]),
        brush ? svg("rect", { class: "brush", x: x - 8, width: 16, y: this.y(brush[1], height), height: this.y(brush[0], height) - this.y(brush[1], height) }) : null,
        this.near && n === 0 ? this.ring(width, height) : null,
      ].flat(Infinity).filter(Boolean);
    });
  }

  // Above its axis; a long one at an end grows to the middle of the plot, not out of it.
  title(whole, x, room, width, tone) {
    const text = cut(whole, Math.max(Math.min(room - 8, 150), room * 0.66), 8), half = text.length * 4;
    const [anchor, at] = x - half < 0 ? ["start", 1] : x + half > width ? ["end", width - 1] : ["middle", x];
    return label(text, { x: at, y: 18, "text-anchor": anchor, fill: tone.ink, "font-weight": 600 }, whole);
  }

  ring(width, height) {
    const pen = new PathPen();
    this.trace(pen, this.near, width, height);
    return svg("path", { d: pen.text, fill: "none", stroke: this.near.colour, "stroke-width": 3 });
  }

  // An axis that one can hold, by pointer and by keys.
  grips(width, height) {
    const key = this.shape;
    if (this.handles.dataset.key !== key) {
      this.handles.dataset.key = key;
      this.handles.replaceChildren(...this.axes.map((axis) => this.grip(axis)));
    }
    this.axes.forEach((axis, n) => {
      const one = this.handles.children[n], brush = this.brushes.get(axis.key);
      Object.assign(one.style, { left: `calc(.6rem + ${this.x(n, width) - 13}px)`, top: `calc(.6rem + ${TOP}px)`, height: `${height - TOP - BOTTOM}px` });
      one.setAttribute("aria-valuenow", String(Math.round(100 * (brush ? (brush[0] + brush[1]) / 2 : 0.5))));
      one.setAttribute("aria-valuetext", brush ? this.between(axis, brush) : "all");
    });
  }

  between(axis, [from, to]) {
    if (axis.names) return axis.names.filter((name) => { const y = this.part(axis, name); return y >= from && y <= to; }).join(", ") || "none";
    const made = axis.over(0, 1);
    return `${number(made.value(from))} to ${number(made.value(to))}`;
  }

  grip(axis) {
    const one = h("div", { class: "grip", role: "slider", tabindex: 0, "aria-orientation": "vertical", "aria-label": `Keep by ${axis.title}`, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 50 });
    const at = (event) => { const box = one.getBoundingClientRect(); return Math.max(0, Math.min(1, 1 - (event.clientY - box.top) / box.height)); };
    let begun = null;
    one.addEventListener("pointerdown", (event) => { one.setPointerCapture(event.pointerId); begun = at(event); event.preventDefault(); one.focus({ preventScroll: true }); });
    one.addEventListener("pointermove", (event) => { if (begun !== null && Math.abs(at(event) - begun) > 0.01) this.keep(axis, [Math.min(begun, at(event)), Math.max(begun, at(event))]); });
    one.addEventListener("pointerup", (event) => { if (begun !== null && Math.abs(at(event) - begun) <= 0.01) this.keep(axis, null); begun = null; });
    one.addEventListener("keydown", (event) => this.key(event, axis));
    return one;
  }

  key(event, axis) {
    const up = { ArrowUp: 0.05, ArrowDown: -0.05 }[event.key], [from, to] = this.brushes.get(axis.key) ?? [0.25, 0.75];
    if (event.key === "Escape") this.keep(axis, null);
    else if (up === undefined) return;
    else if (!this.brushes.has(axis.key)) this.keep(axis, up > 0 ? [0.5, 1] : [0, 0.5]);
    else if (event.shiftKey) this.keep(axis, from + 0.02 < to || up > 0 ? [Math.max(0, from - up / 2), Math.min(1, to + up / 2)] : [from, to]);
    else this.keep(axis, from + up < 0 || to + up > 1 ? [from, to] : [from + up, to + up]);
    event.preventDefault();
  }

  keep(axis, ends) {
    ends ? this.brushes.set(axis.key, ends) : this.brushes.delete(axis.key);
    this.draw();
  }

  clear() {
    this.brushes.clear();
    this.draw();
  }

  leave() { if (this.near) { this.near = null; this.draw(); } this.tip.hidden = true; }

  // The kept run whose line passes nearest to the pointer.
  hover(event) {
    const box = this.canvas.getBoundingClientRect(), [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const { clientWidth: width, clientHeight: height } = this.canvas;
    let best = null, distance = 12;
    for (const line of this.kept) {
      const places = this.points(line, width, height);
      for (let n = 0; n + 1 < places.length; n++) {
        const [a, b] = [places[n], places[n + 1]];
        if (!a || !b || px < a[0] || px > b[0]) continue;
        const d = Math.abs(a[1] + ((b[1] - a[1]) * (px - a[0])) / (b[0] - a[0]) - py);
        if (d < distance) { distance = d; best = line; }
      }
    }
    const moved = best !== this.near;
    this.near = best;
    this.tip.hidden = !best;
    this.canvas.style.cursor = best ? "pointer" : "default";
    if (best) { this.tip.replaceChildren(...told(best.colour, best.name, best.facts())); placeTip(this.tip, this.plot, px, py); }
    if (moved) this.draw();
  }

  shapes(width, height, tone) {
    const line = (one, colour, alpha) => { const pen = new PathPen(); this.trace(pen, one, width, height); return svg("path", { d: pen.text, fill: "none", stroke: colour, "stroke-opacity": alpha, "stroke-width": 1.2 }); };
    return [this.lines.map((one) => (this.keeps(one) ? line(one, one.colour, 0.8) : line(one, tone.muted, 0.14))), this.framed(width, height, tone)];
  }
}
