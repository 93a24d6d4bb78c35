// Runs as points between two axes, each of numbers or of names; with a line through some, or fields of colour below.

import { h } from "../dom.js";
import { number } from "../words.js";
import { frame, label, roomFor } from "./frame.js";
import { marks, named, scale } from "./scale.js";
import { svg, tones } from "./svg.js";
import { placeTip, told } from "./tip.js";

const RIGHT = 14, TOP = 10, BOTTOM = 42, REACH = 22;

// An axis of a parameter: numbers in order, on a logarithmic scale where that suits; else names, each by itself.
export class Axis {
  // values: the few that there are, which the axis then names.
  constructor(title, { low, high, log = false, names = null, values = null, whole = false }) {
    Object.assign(this, { title, low, high, log, names, values, whole });
  }

  over(from, to) {
    if (this.names) return named(this.names, from, to);
    const pad = (to - from) * 0.03;
    return scale(this.low, this.high, from + pad, to - pad, this.log);
  }

  marks(made, wanted) {
    if (this.names) return made.marks();
    return this.values ? this.values.map((v) => ({ at: made.at(v), text: number(v) })) : marks(made, this.whole ? Math.min(wanted, this.high - this.low) : wanted);
  }
}

export class Scatter {
  constructor({ label, open, size = "low" }) {
    Object.assign(this, { label, open, points: [], near: null });
    this.back = svg("svg", { class: "frame", "aria-hidden": "true" });
    this.canvas = h("canvas", { role: "img", "aria-label": label });
    this.over = svg("svg", { class: "over", "aria-hidden": "true" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.plot = h("div", { class: `chart ${size} dots` }, this.back, this.canvas, this.over, this.tip);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    const at = (event) => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.canvas.addEventListener("pointermove", (event) => this.hover(...at(event)));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.canvas.addEventListener("click", () => { if (this.near) this.open?.(this.near.id); });
  }

  // points: [{id, name, x, y, colour, hollow, facts}]; line: [[x, y]] in steps; fields(sx, sy): [{x, y, width, height, colour, alpha}]
  set(points, { x, y, line = [], fields = null, words = "" }) {
    Object.assign(this, { points, axisX: x, axisY: y, line, fields });
    this.canvas.setAttribute("aria-label", `${this.label}: ${words}`);
    this.draw();
  }

  draw() {
    this.asked ||= requestAnimationFrame(() => { this.asked = 0; this.paint(); });
  }

  axes(width, height) {
    const box = { left: 0, right: width - RIGHT, top: TOP, bottom: height - BOTTOM };
    const sy = this.axisY.over(box.bottom, box.top);
    const up = this.axisY.marks(sy, Math.max(3, Math.min(8, height / 46)));
    box.left = roomFor(up, Math.min(130, width / 3)) + (this.axisY.shown ? 16 : 0);
    const sx = this.axisX.over(box.left, box.right);
    return { sx, sy, up, across: this.axisX.marks(sx, Math.max(3, (width - box.left) / 75)), box };
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !this.axisX) return;
    const ratio = window.devicePixelRatio || 1, tone = tones(this.canvas);
    Object.assign(this, this.axes(width, height));
    this.back.replaceChildren(...this.framed(width, tone));
    Object.assign(this.canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const ink = this.canvas.getContext("2d");
    ink.scale(ratio, ratio);
    for (const one of this.fields?.(this.sx, this.sy, this.box) ?? []) {
      ink.globalAlpha = one.alpha;
      ink.fillStyle = one.colour;
      ink.fillRect(one.x, one.y, one.width, one.height);
    }
    ink.globalAlpha = 1;
    if (this.line.length) this.stairs(ink, tone);
    for (const point of this.points) this.dot(ink, point, tone);
    this.mark();
  }

  framed(width, tone) {
    const made = frame(this.box, { marks: this.across, title: this.axisX.title }, { marks: this.up, title: this.axisY.shown ? this.axisY.title : "" }, tone, width).flat(Infinity).filter(Boolean);
    if (!this.points.length) made.push(label("nothing to show yet", { x: (this.box.left + this.box.right) / 2, y: this.box.bottom / 2, "text-anchor": "middle", fill: tone.muted }));
    return made;
  }

  at(point) { return [this.sx.at(point.x), this.sy.at(point.y)]; }

  dot(ink, point, tone) {
    const [x, y] = this.at(point);
    ink.beginPath();
    ink.arc(x, y, this.points.length > 300 ? 2.6 : 3.6, 0, 7);
    ink.fillStyle = point.hollow ? tone.card : point.colour;
    ink.fill();
    ink.strokeStyle = point.hollow ? point.colour : tone.card;
    ink.lineWidth = point.hollow ? 1.6 : 0.8;
    ink.stroke();
  }

  steps() {
    const found = [];
    this.line.forEach(([x, y], n) => {
      const [px, py] = [this.sx.at(x), this.sy.at(y)];
      if (n) found.push([px, found.at(-1)[1]]);
      found.push([px, py]);
    });
    return found;
  }

  stairs(ink, tone) {
    ink.strokeStyle = tone.accent;
    ink.lineWidth = 2;
    ink.beginPath();
    for (const [x, y] of this.steps()) ink.lineTo(x, y);
    ink.stroke();
  }

  mark() {
    this.over.replaceChildren(...(this.near ? [svg("circle", { cx: this.at(this.near)[0], cy: this.at(this.near)[1], r: 7, fill: "none", stroke: tones(this.canvas).ink, "stroke-width": 2 })] : []));
  }

  leave() { this.near = null; this.tip.hidden = true; if (this.sx) this.mark(); }

  hover(px, py) {
    let best = null, distance = REACH;
    for (const point of this.points) {
      const [x, y] = this.at(point), d = Math.hypot(x - px, y - py);
      if (d < distance) { distance = d; best = point; }
    }
    this.near = best;
    this.tip.hidden = !best;
    if (best) { this.tip.replaceChildren(...told(best.colour, best.name, best.facts())); placeTip(this.tip, this.plot, px, py); }
    this.canvas.style.cursor = best && this.open ? "pointer" : "default";
    this.mark();
  }

  shapes(width, height, tone) {
    const now = { sx: this.sx, sy: this.sy, up: this.up, across: this.across, box: this.box };
    Object.assign(this, this.axes(width, height));
    const made = [
      (this.fields?.(this.sx, this.sy, this.box) ?? []).map((one) => svg("rect", { x: one.x, y: one.y, width: one.width, height: one.height, fill: one.colour, "fill-opacity": one.alpha })),
      this.framed(width, tone),
      this.line.length ? svg("path", { d: `M${this.steps().map((one) => one.join(" ")).join("L")}`, fill: "none", stroke: tone.accent, "stroke-width": 2 }) : null,
      this.points.map((point) => svg("circle", { cx: this.at(point)[0], cy: this.at(point)[1], r: 3.6, fill: point.hollow ? tone.card : point.colour, stroke: point.hollow ? point.colour : tone.card })),
    ];
    Object.assign(this, now);
    return made;
  }
}
