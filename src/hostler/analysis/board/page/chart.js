// Curves on a canvas: hundreds at once. Drag to zoom, double click or 0 to see all, arrows to move, + and - to zoom.

import { h } from "./dom.js";
import { range, scale, ticks } from "./scale.js";
import { number } from "./words.js";

const LEFT = 62, RIGHT = 12, TOP = 12, BOTTOM = 40;
const HUES = [174, 24, 262, 212, 340, 45, 130, 300, 195, 5];

export function colour(n, dark) {
  return `hsl(${HUES[n % HUES.length]} ${dark ? "55% 66%" : "58% 38%"})`;
}

export class Chart {
  constructor({ label, size = "tall", open }) {
    Object.assign(this, { lines: [], open, zoom: null, logX: false, logY: false, near: null, label });
    this.canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": label });
    this.tip = h("div", { class: "tip", hidden: true });
    this.legend = h("div", { class: "legend", tabindex: 0, role: "group", "aria-label": "Legend" });
    this.plot = h("div", { class: `chart ${size}` }, this.canvas, this.tip);
    this.element = h("div", { class: "card" }, this.plot, this.legend);
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.listen();
  }

  // lines: [{id, name, x, y, group, colour}]
  set(lines, { logX = this.logX, logY = this.logY, groups = [], y = "" } = {}) {
    Object.assign(this, { lines, logX, logY, yTitle: y });
    this.legend.hidden = !groups.length;
    this.legend.replaceChildren(...groups.map((group) => {
      const swatch = h("i");
      swatch.style.background = group.colour;
      return h("span", {}, swatch, group.name);
    }));
    this.canvas.setAttribute("aria-label", this.words());
    this.draw();
  }

  words() {
    const last = this.lines.map((line) => line.y.findLast((v) => Number.isFinite(v))).filter((v) => v !== undefined);
    if (!last.length) return `${this.label}: nothing to show yet`;
    const [low, high] = [Math.min(...last), Math.max(...last)];
    return `${this.label}: ${this.lines.length} curves of ${this.yTitle}, last values from ${number(low)} to ${number(high)}`;
  }

  draw() {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = box.width * ratio;
    this.canvas.height = box.height * ratio;
    this.axes(box);
    const ink = this.canvas.getContext("2d");
    ink.scale(ratio, ratio);
    const style = getComputedStyle(this.canvas);
    const tone = (name) => style.getPropertyValue(name).trim();
    ink.font = `12px ${tone("--sans")}`;
    this.frame(ink, box, tone);
    this.curves(ink, box);
    if (this.drag) this.marquee(ink, tone);
  }

  axes(box) {
    const all = { x: range(this.lines.map((l) => l.x), this.logX), y: range(this.lines.map((l) => l.y), this.logY) };
    const pad = this.logY ? 0 : (all.y[1] - all.y[0]) * 0.04;
    const see = this.zoom ?? { x: all.x, y: [all.y[0] - pad, all.y[1] + pad] };
    this.sx = scale(...see.x, LEFT, box.width - RIGHT, this.logX);
    this.sy = scale(...see.y, box.height - BOTTOM, TOP, this.logY);
  }

  frame(ink, box, tone) {
    ink.strokeStyle = tone("--line");
    ink.fillStyle = tone("--muted");
    ink.lineWidth = 1;
    ink.textAlign = "right";
    ink.textBaseline = "middle";
    for (const v of ticks(this.sy, 6)) {
      const y = Math.round(this.sy.at(v)) + 0.5;
      if (y < TOP - 1 || y > box.height - BOTTOM + 1) continue;
      ink.beginPath(); ink.moveTo(LEFT, y); ink.lineTo(box.width - RIGHT, y); ink.stroke();
      ink.fillText(number(v), LEFT - 8, y);
    }
    ink.textAlign = "center";
    ink.textBaseline = "top";
    for (const v of ticks(this.sx, Math.max(3, box.width / 130))) {
      const x = this.sx.at(v);
      if (x >= LEFT - 1 && x <= box.width - RIGHT + 1) ink.fillText(number(v), x, box.height - BOTTOM + 7);
    }
    ink.fillText(this.xTitle ?? "step", (LEFT + box.width - RIGHT) / 2, box.height - BOTTOM + 22);
    if (!this.lines.length) {
      ink.textBaseline = "middle";
      ink.fillText("nothing to show yet", (LEFT + box.width) / 2, box.height / 2);
    }
  }

  curves(ink, box) {
    ink.save();
    ink.beginPath(); ink.rect(LEFT, TOP, box.width - LEFT - RIGHT, box.height - TOP - BOTTOM); ink.clip();
    const many = this.lines.length > 30;
    for (const line of this.lines) {
      const on = this.near?.line === line;
      ink.strokeStyle = ink.fillStyle = line.colour;
      ink.globalAlpha = this.near && !on ? 0.25 : many ? 0.65 : 1;
      ink.lineWidth = on ? 2.6 : many ? 1.1 : 1.7;
      ink.beginPath();
      let pen = false, count = 0;
      for (let n = 0; n < line.x.length; n++) {
        const v = line.y[n];
        if (!Number.isFinite(v) || (this.logY && v <= 0) || (this.logX && line.x[n] <= 0)) { pen = false; continue; }
        const [x, y] = [this.sx.at(line.x[n]), this.sy.at(v)];
        pen ? ink.lineTo(x, y) : ink.moveTo(x, y);
        pen = true;
        count++;
        if (line.x.length === 1) { ink.arc(x, y, 2.5, 0, 7); ink.fill(); }
      }
      if (count) ink.stroke();
    }
    ink.restore();
  }

  marquee(ink, tone) {
    const { x0, y0, x1, y1 } = this.drag;
    ink.globalAlpha = 0.15; ink.fillStyle = tone("--accent");
    ink.fillRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
    ink.globalAlpha = 1;
  }

  listen() {
    const at = (event) => { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    this.canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = at(event);
      this.canvas.setPointerCapture(event.pointerId);
      this.drag = { x0: x, y0: y, x1: x, y1: y };
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (this.drag) { Object.assign(this.drag, { x1: x, y1: y }); this.draw(); } else this.hover(x, y);
    });
    this.canvas.addEventListener("pointerup", () => this.release());
    this.canvas.addEventListener("pointerleave", () => { this.near = null; this.tip.hidden = true; this.draw(); });
    this.canvas.addEventListener("dblclick", () => this.reset());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  release() {
    const d = this.drag;
    this.drag = null;
    if (d && Math.abs(d.x1 - d.x0) > 6 && Math.abs(d.y1 - d.y0) > 6) {
      const sort = (a, b) => (a < b ? [a, b] : [b, a]);
      this.see(sort(this.sx.value(d.x0), this.sx.value(d.x1)), sort(this.sy.value(d.y0), this.sy.value(d.y1)));
    } else {
      if (this.near && this.open) this.open(this.near.line.id);
      this.draw();
    }
  }

  see(x, y) { this.zoom = { x, y }; this.plot.dataset.zoomed = "yes"; this.draw(); }

  reset() { this.zoom = null; delete this.plot.dataset.zoomed; this.draw(); }

  key(event) {
    const x = [this.sx.low, this.sx.high], y = [this.sy.low, this.sy.high];
    const shift = ([a, b], f) => [a + (b - a) * f, b + (b - a) * f];
    const grow = ([a, b], f) => [(a + b) / 2 - ((b - a) / 2) * f, (a + b) / 2 + ((b - a) / 2) * f];
    const moves = {
      ArrowLeft: () => this.see(shift(x, -0.1), y), ArrowRight: () => this.see(shift(x, 0.1), y),
      ArrowUp: () => this.see(x, shift(y, 0.1)), ArrowDown: () => this.see(x, shift(y, -0.1)),
      "+": () => this.see(grow(x, 0.7), grow(y, 0.7)), "-": () => this.see(grow(x, 1.4), grow(y, 1.4)), 0: () => this.reset(),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  hover(px, py) {
    let best = null, distance = 26;
    for (const line of this.lines) for (let n = 0; n < line.x.length; n++) {
      const d = Math.hypot(this.sx.at(line.x[n]) - px, this.sy.at(line.y[n]) - py);
      if (d < distance) { distance = d; best = { line, n }; }
    }
    const moved = best?.line !== this.near?.line;
    this.near = best;
    this.tip.hidden = !best;
    if (best) {
      this.tip.replaceChildren(h("strong", {}, best.line.name), h("br"),
        `step ${number(best.line.x[best.n])}: ${number(best.line.y[best.n])}`);
      const box = this.plot.getBoundingClientRect();
      this.tip.style.left = `${Math.min(px + 18, box.width - 200)}px`;
      this.tip.style.top = `${py + 14}px`;
    }
    if (moved) this.draw();
  }
}
