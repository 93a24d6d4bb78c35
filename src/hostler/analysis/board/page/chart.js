// Curves of hundreds of runs. Drag to zoom, double click or 0 to see all; shift and drag, arrows or a sideways wheel to move; + and -, or ctrl and the wheel, to zoom.
//
// Each run has its own places along x (its own clock, its own epochs). A library that draws columns over one shared x, as uPlot does, would need all places of all runs in every
// column, and a nearest curve, bands and groups by hand all the same.
//
// Three layers: the frame below and what one points at above are SVG, the curves between them a canvas. While the picture moves, curves have only as many points as this
// machine draws in time; once it rests, all that the screen can show.

import { h } from "./dom.js";
import { frame, label, roomFor } from "./plots/frame.js";
import { marks, roomy, scale } from "./plots/scale.js";
import { Series } from "./plots/series.js";
import { PathPen, svg, tones } from "./plots/svg.js";
import { placeTip, swatch, told } from "./plots/tip.js";
import { duration, moment, number } from "./words.js";

const RIGHT = 14, TOP = 10, BOTTOM = 42;
const MANY = 30; // curves from which on they are thin
const REST = 140; // ms without a movement, after which everything is drawn
const SLOW = 19; // ms between two frames that are too many
const LEAST = 8_000, ALL = 50_000; // points of a frame while it moves: more cost a machine without a graphics card most of a 60th of a second

export class Chart {
  // open(id): a click on a curve; zoomed(zoom): another part is looked at; near(key): what one points at.
  constructor({ label, size = "tall", open, zoomed, near }) {
    Object.assign(this, { label, open, zoomed, onNear: near, lines: [], zoom: null, logX: false, logY: false, near: null, kind: "number", xTitle: "step", yTitle: "", budget: 40_000, moving: false });
    this.back = svg("svg", { class: "frame", "aria-hidden": "true" });
    this.canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": label });
    this.over = svg("svg", { class: "over", "aria-hidden": "true" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.legend = h("div", { class: "legend", tabindex: 0, role: "group", "aria-label": "Legend", hidden: true });
    this.plot = h("div", { class: `chart ${size}` }, this.back, this.canvas, this.over, this.tip);
    this.element = h("div", { class: "card" }, this.plot, this.legend);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.listen();
  }

  // lines: [{key, id, name, x, y, colour, faint, band: {low, high}, members: [Series], strong, facts: [[name, text]]}]
  set(lines, { logX = this.logX, logY = this.logY, groups = [], y = this.yTitle, xTitle = "step", kind = "number" } = {}) {
    Object.assign(this, { logX, logY, yTitle: y, xTitle, kind });
    this.lines = lines.map((line) => ({ ...line, key: line.key ?? line.id, series: line.series ?? new Series(line.x, line.y) })).sort((a, b) => Boolean(a.strong) - Boolean(b.strong));
    this.all = this.extent();
    this.isBlank = !this.lines.some((line) => line.series.y.some(Number.isFinite));
    this.legend.hidden = !groups.length;
    this.legend.replaceChildren(...groups.map((group) => h("span", {}, swatch(group.colour), group.name)));
    this.canvas.setAttribute("aria-label", this.words());
    this.draw();
  }

  words() {
    const last = this.lines.map((line) => line.series.y.findLast((v) => Number.isFinite(v))).filter((v) => v !== undefined);
    if (!last.length) return `${this.label}: nothing to show yet`;
    const [low, high] = last.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    return `${this.label}: ${this.lines.length} curves of ${this.yTitle}, last values from ${number(low)} to ${number(high)}`;
  }

  // Ends of all that is there, or of what lies between two places.
  extent(from = -Infinity, to = Infinity) {
    const x = [Infinity, -Infinity], y = [Infinity, -Infinity];
    const take = (list, n, xs) => {
      const v = list[n], w = xs[n];
      if (!(v - v === 0) || !(w - w === 0) || w < from || w > to || (this.logY && v <= 0) || (this.logX && w <= 0)) return;
      if (w < x[0]) x[0] = w;
      if (w > x[1]) x[1] = w;
      if (v < y[0]) y[0] = v;
      if (v > y[1]) y[1] = v;
    };
    for (const { series, band, members } of this.lines) {
      for (let n = 0; n < series.x.length; n++) {
        take(series.y, n, series.x);
        if (band) { take(band.low, n, series.x); take(band.high, n, series.x); }
      }
      for (const one of members ?? []) for (let n = 0; n < one.x.length; n++) take(one.y, n, one.x);
    }
    return { x: roomy(...x, this.logX), y: this.padded(roomy(...y, this.logY)) };
  }

  padded([low, high]) {
    return this.logY ? [low / 1.1, high * 1.1] : [low - (high - low) * 0.04, high + (high - low) * 0.04];
  }

  // Axes for a picture of this size.
  axes(width, height) {
    const all = this.all ?? { x: [0, 1], y: [0, 1] };
    const x = this.zoom?.x ?? all.x, y = this.zoom?.y ?? all.y;
    const sy = scale(...y, height - BOTTOM, TOP, this.logY);
    const up = marks(sy, Math.max(3, Math.min(8, height / 48)));
    const left = roomFor(up, Math.min(110, width / 3));
    const sx = scale(...x, left, width - RIGHT, this.logX);
    const across = marks(sx, this.kind === "number" ? Math.max(4, (width - left) / 110) : Math.max(2, (width - left) / 130), this.kind);
    return { sx, sy, up, across: across.filter((mark) => mark.at >= left - 1 && mark.at <= width - RIGHT + 1), box: { left, right: width - RIGHT, top: TOP, bottom: height - BOTTOM } };
  }

  // Draws with the next frame, however often it is asked for.
  draw() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => { this.asked = 0; this.paint(); });
  }

  // Draws while somebody moves it: fast now, fine once it rests.
  move() {
    if (!this.moving) this.last = 0;
    this.moving = true;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => { this.moving = false; this.draw(); }, REST);
    this.draw();
  }

  // As many points as come in time: fewer after a frame that was late, more after one that was not.
  adapt() {
    const now = performance.now(), took = now - this.last;
    if (this.last && took < 200) this.budget = Math.max(LEAST, Math.min(ALL, this.budget * (took > SLOW ? 0.85 : 1.05)));
    this.last = now;
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    if (this.moving) this.adapt();
    const ratio = window.devicePixelRatio || 1, tone = tones(this.canvas);
    Object.assign(this, this.axes(width, height));
    this.back.replaceChildren(...this.framed(width, tone));
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== high) Object.assign(this.canvas, { width: wide, height: high });
    const ink = this.canvas.getContext("2d");
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    ink.clearRect(0, 0, width, height);
    ink.save();
    ink.beginPath();
    ink.rect(this.box.left, 0, this.box.right - this.box.left + 1, this.box.bottom + 1);
    ink.clip();
    this.curves(ink, width, ratio, tone);
    ink.restore();
    this.mark();
  }

  framed(width, tone) {
    const made = frame(this.box, { marks: this.across, title: this.xTitle }, { marks: this.up }, tone, width).flat(Infinity).filter(Boolean);
    if (this.isBlank ?? true) made.push(label(this.lines.length ? "no finite value yet" : "nothing to show yet", { x: (this.box.left + this.box.right) / 2, y: this.box.bottom / 2, "text-anchor": "middle", fill: tone.muted }));
    return made;
  }

  // Bands first, then what is faint, then the curves; the one that matters is the last of them.
  curves(ink, width, ratio, tone) {
    const many = this.lines.length > MANY, hair = 1 / ratio;
    const most = this.moving ? Math.max(24, this.budget / Math.max(1, this.lines.length)) : Math.max(400, width * 2);
    const [low, high] = [this.sx.low, this.sx.high];
    const stroke = (series, colour, alpha, thick) => {
      ink.strokeStyle = colour;
      ink.globalAlpha = alpha;
      ink.lineWidth = thick;
      ink.beginPath();
      const count = series.trace(ink, this.sx, this.sy, low, high, most);
      ink.stroke();
      if (count === 1 || series.x.length === 1) this.dot(ink, series, colour);
    };
    ink.lineJoin = "round";
    for (const line of this.lines) if (line.band) this.fill(ink, line);
    for (const line of this.lines) for (const one of line.members ?? []) stroke(one, line.colour, 0.3, hair);
    if (!this.moving || this.lines.length < MANY) for (const line of this.lines) if (line.faint) stroke(line.faint, line.colour, 0.28, hair);
    for (const line of this.lines) {
      if (line.strong) stroke(line.series, tone.card, 0.9, 5);
      stroke(line.series, line.colour, many && !line.strong ? 0.75 : 1, line.strong ? 2.8 : many || (this.moving && this.lines.length > 8) ? hair : 1.7);
    }
  }

  dot(ink, series, tone) {
    const n = series.y.findLastIndex((v) => Number.isFinite(v));
    if (n < 0) return;
    ink.fillStyle = tone;
    ink.beginPath();
    ink.arc(this.sx.at(series.x[n]), this.sy.at(series.y[n]), 2.5, 0, 7);
    ink.fill();
  }

  fill(ink, line) {
    ink.fillStyle = line.colour;
    ink.globalAlpha = this.veil();
    ink.beginPath();
    this.outline(ink, line);
    ink.fill();
  }

  // How much a band covers: less where many lie over each other.
  veil() { return this.lines.length > 4 ? 0.1 : 0.16; }

  // Around a band: along its upper end, and back along the lower one.
  outline(pen, { series, band }) {
    const there = [...series.x.keys()].filter((n) => Number.isFinite(band.low[n]) && Number.isFinite(band.high[n]) && (!this.logY || band.high[n] > 0) && (!this.logX || series.x[n] > 0));
    const floor = this.logY ? this.sy.low / 10 : -Infinity;
    there.forEach((n, i) => (i ? pen.lineTo : pen.moveTo).call(pen, this.sx.at(series.x[n]), this.sy.at(band.high[n])));
    for (const n of there.reverse()) pen.lineTo(this.sx.at(series.x[n]), this.sy.at(Math.max(floor, band.low[n])));
  }

  // What one points at, here or in another plot, over the others.
  mark() {
    const line = this.lines.find((one) => one.key === this.near?.key);
    this.canvas.classList.toggle("dim", Boolean(line));
    const made = [];
    if (line) {
      const pen = new PathPen();
      line.series.trace(pen, this.sx, this.sy, this.sx.low, this.sx.high, 900);
      const inside = `M${this.box.left} 0H${this.box.right + 1}V${this.box.bottom + 1}H${this.box.left}Z`;
      made.push(svg("clipPath", { id: this.clip() }, svg("path", { d: inside })), svg("path", { d: pen.text, fill: "none", stroke: line.colour, "stroke-width": 2.6, "clip-path": `url(#${this.clip()})` }));
      if (this.near.n !== undefined) made.push(svg("circle", { cx: this.sx.at(line.series.x[this.near.n]), cy: this.sy.at(line.series.y[this.near.n]), r: 4, fill: line.colour }));
    }
    if (this.drag?.brush) {
      const { x0, y0, x1, y1 } = this.marquee();
      made.push(svg("rect", { class: "brush", x: x0, y: y0, width: x1 - x0, height: y1 - y0 }));
    }
    this.over.replaceChildren(...made);
  }

  clip() { return (this.own ??= `clip-${++Chart.made}`); }

  // A drag that hardly goes up or down means all of the height.
  marquee() {
    const { x0, y0, x1, y1 } = this.drag, flat = Math.abs(y1 - y0) < 24;
    const inside = (v, a, b) => Math.max(a, Math.min(b, v));
    const [left, right] = [Math.min(x0, x1), Math.max(x0, x1)].map((v) => inside(v, this.box.left, this.box.right));
    const [up, down] = flat ? [this.box.top, this.box.bottom] : [Math.min(y0, y1), Math.max(y0, y1)].map((v) => inside(v, this.box.top, this.box.bottom));
    return { x0: left, y0: up, x1: right, y1: down, flat };
  }

  listen() {
    const at = (event) => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const on = (name, act, options) => this.canvas.addEventListener(name, act, options);
    on("pointerdown", (event) => {
      if (event.button) return;
      const [x, y] = at(event);
      this.canvas.setPointerCapture(event.pointerId);
      this.drag = { x0: x, y0: y, x1: x, y1: y, brush: !event.shiftKey, sx: this.sx, sy: this.sy };
    });
    on("pointermove", (event) => {
      const [x, y] = at(event);
      if (!this.drag) { this.hover(x, y); return; }
      Object.assign(this.drag, { x1: x, y1: y });
      this.drag.brush ? this.mark() : this.pan();
    });
    on("pointerup", () => this.release());
    on("pointercancel", () => { this.drag = null; this.mark(); });
    on("pointerleave", () => { if (!this.drag) this.leave(); });
    on("dblclick", () => this.reset());
    on("keydown", (event) => this.key(event));
    on("wheel", (event) => this.wheel(event, at(event)), { passive: false });
  }

  pan() {
    const { sx, sy, x0, y0, x1, y1 } = this.drag;
    const along = (axis, from, to) => [axis.value(axis.from + from - to), axis.value(axis.to + from - to)];
    const up = along(sy, y0, y1);
    this.see(along(sx, x0, x1), up);
  }

  release() {
    const drag = this.drag;
    if (!drag) return;
    const { x0, y0, x1, y1, flat } = this.marquee();
    this.drag = null;
    if (drag.brush && x1 - x0 > 6) {
      const x = [this.sx.value(x0), this.sx.value(x1)];
      this.see(x, flat ? this.extent(...x).y : [this.sy.value(y1), this.sy.value(y0)]);
    } else if (drag.brush && this.near?.id && this.open) this.open(this.near.id);
    else this.mark();
  }

  see(x, y) {
    this.zoom = { x, y };
    this.plot.dataset.zoomed = "yes";
    this.move();
    this.zoomed?.(this.zoom);
  }

  reset() {
    this.zoom = null;
    delete this.plot.dataset.zoomed;
    this.draw();
    this.zoomed?.(null);
  }

  // Another plot was zoomed, or the address says so: nobody is told.
  follow(zoom) {
    this.zoom = zoom;
    zoom ? (this.plot.dataset.zoomed = "yes") : delete this.plot.dataset.zoomed;
    zoom ? this.move() : this.draw();
  }

  // Around a place of the screen, or the middle.
  grow(factor, px = (this.box.left + this.box.right) / 2, py = (this.box.top + this.box.bottom) / 2) {
    const around = (axis, middle) => [axis.value(middle + (axis.from - middle) * factor), axis.value(middle + (axis.to - middle) * factor)];
    this.see(around(this.sx, px), around(this.sy, py));
  }

  shift(dx, dy) {
    const moved = (axis, by) => [axis.value(axis.from + by), axis.value(axis.to + by)];
    this.see(moved(this.sx, dx), moved(this.sy, dy));
  }

  wheel(event, [x, y]) {
    if (event.ctrlKey || event.metaKey) this.grow(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 150), x, y);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.shift(event.deltaX, 0);
    else return;
    event.preventDefault();
  }

  key(event) {
    const [wide, high] = [(this.box.right - this.box.left) / 10, (this.box.bottom - this.box.top) / 10];
    const moves = {
      ArrowLeft: () => this.shift(-wide, 0), ArrowRight: () => this.shift(wide, 0), ArrowUp: () => this.shift(0, -high), ArrowDown: () => this.shift(0, high),
      "+": () => this.grow(0.7), "=": () => this.grow(0.7), "-": () => this.grow(1.4), 0: () => this.reset(),
    };
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moves[event.key]();
  }

  leave() {
    this.near = null;
    this.tip.hidden = true;
    this.mark();
    this.onNear?.(null);
  }

  // Shows a curve by its key: another plot, or the legend, points at it.
  point(key) {
    if (this.near?.key === key || (!key && !this.near)) return;
    this.near = key ? { key } : null;
    this.tip.hidden = true;
    this.mark();
  }

  // The curve nearest to the pointer, by how far above or below it passes.
  nearest(px, py) {
    const x = this.sx.value(px), reach = Math.abs(this.sx.value(px + 8) - x);
    let best = null, distance = 40;
    for (const line of this.lines) {
      const { series } = line, n = series.find(x);
      if (!series.sorted || !series.x.length) continue;
      let y = series.value(x);
      const near = n > 0 && (n >= series.x.length || x - series.x[n - 1] < series.x[n] - x) ? n - 1 : n;
      if (!Number.isFinite(y) && Math.abs(series.x[near] - x) <= reach) y = series.y[near];
      const d = Math.abs(this.sy.at(y) - py);
      if (d < distance) { distance = d; best = { key: line.key, id: line.id, line, n: near }; }
    }
    return best;
  }

  hover(px, py) {
    const inside = px >= this.box.left - 4 && px <= this.box.right + 4 && py <= this.box.bottom + 4;
    const best = inside ? this.nearest(px, py) : null;
    if (!best) { if (this.near) this.leave(); return; }
    const moved = best.key !== this.near?.key;
    this.near = best;
    this.tip.hidden = false;
    this.tip.replaceChildren(...this.told(best));
    placeTip(this.tip, this.plot, px, py);
    this.mark();
    if (moved) this.onNear?.(best.key);
  }

  told({ line, n }) {
    const rows = [[this.xTitle, this.place(line.series.x[n])], [this.yTitle || "value", String(line.series.y[n])],
      ...(line.faint ? [["not smoothed", String(line.faint.y[n])]] : []),
      ...(line.band ? [["band", `${number(line.band.low[n])} to ${number(line.band.high[n])}`]] : []), ...(line.facts ?? [])];
    return told(line.colour, line.strong ? `★ ${line.name}` : line.name, rows);
  }

  place(x) {
    return this.kind === "time" ? moment(x) : this.kind === "duration" ? duration(x) : number(x);
  }

  // The same picture as SVG of this size, without the page around it.
  shapes(width, height, tone) {
    const now = { sx: this.sx, sy: this.sy, up: this.up, across: this.across, box: this.box };
    Object.assign(this, this.axes(width, height));
    const pen = (draw) => { const one = new PathPen(); draw(one); return one.text; };
    const traced = (series) => pen((one) => series.trace(one, this.sx, this.sy, this.sx.low, this.sx.high, 800));
    const path = (series, line, alpha, thick) => svg("path", { d: traced(series), fill: "none", stroke: line.colour, "stroke-opacity": alpha, "stroke-width": thick, "stroke-linejoin": "round" });
    const { left, right, bottom } = this.box, many = this.lines.length > MANY;
    const made = [this.framed(width, tone), svg("clipPath", { id: "inside" }, svg("rect", { x: left, y: 0, width: right - left, height: bottom })), svg("g", { "clip-path": "url(#inside)" },
      this.lines.filter((line) => line.band).map((line) => svg("path", { d: pen((one) => this.outline(one, line)), fill: line.colour, "fill-opacity": this.veil() })),
      this.lines.map((line) => (line.members ?? []).map((one) => path(one, line, 0.3, 1))),
      this.lines.map((line) => line.faint && path(line.faint, line, 0.28, 1)),
      this.lines.map((line) => path(line.series, line, 1, line.strong ? 2.8 : many ? 1 : 1.7)))];
    Object.assign(this, now);
    return made;
  }
}

Chart.made = 0;
