// What a search has found: its history, what its parameters matter, and the metric along and over them. It keeps up with a search that runs.

import { get } from "./data.js";
import { h, show, toast } from "./dom.js";
import { isDark, ramp } from "./plots/colours.js";
import { fields } from "./plots/contour.js";
import { choose } from "./plots/controls.js";
import { copyButtons, drawing } from "./plots/copy.js";
import { Parallel } from "./plots/parallel.js";
import { logarithmic, roomy } from "./plots/scale.js";
import { Axis, Scatter } from "./plots/scatter.js";
import { cut, tones } from "./plots/svg.js";
import { inFull } from "./plots/tip.js";
import { count, kindOf, number, text, thousands } from "./words.js";

const AXES = 10, SLICES = 12, LABEL = 14; // letters of a name beside its bar
const FEW = 8; // values of a parameter that an axis names one by one
const EVERY = 800; // ms between two looks at a search that runs
const NEVER_BEST = new Set(["failed", "diverged"]);
const open = (id) => { location.hash = `#/run/${encodeURIComponent(id)}`; };

export async function searchView(context) {
  return new SearchPage(context).begin();
}

class SearchPage {
  constructor({ name, data, kept, place, sweep }) {
    Object.assign(this, { name, data, kept, place, sweep, slices: new Map() });
    kept.search ??= { metric: "", x: "", y: "" };
  }

  async begin() {
    const card = (title, plot, more = null, extra = "") => h("section", { class: `panel card ${extra}`, "aria-label": title },
      h("div", { class: "panelhead" }, h("h2", {}, title), more, plot.shapes ? copyButtons(title, () => this.drawing(title, plot)) : null), plot.element ?? plot.plot ?? plot);
    this.card = card;
    this.history = new Scatter({ label: "History", open });
    this.parallel = new Parallel({ label: "Parallel coordinates", open, changed: (kept) => this.tell(kept) });
    this.contour = new Scatter({ label: "Contour", open, size: "tall" });
    this.bars = h("ol", { class: "importance", tabindex: 0, "aria-label": "Importance of parameters" });
    this.compared = h("span", { class: "muted" });
    this.keptRuns = h("span", { class: "muted", role: "status" });
    this.take = h("button", { type: "button", class: "small", onclick: () => this.select() }, "Select these runs");
    this.every = h("button", { type: "button", class: "quiet small", onclick: () => this.parallel.clear() }, "Keep all");
    this.over = ["x", "y"].map((axis) => h("select", { "aria-label": `Contour ${axis}`, onchange: (event) => { this.kept.search[axis] = event.target.value; this.draw(); } }));
    this.scaled = h("span", { class: "scale muted" });
    this.slicesPlace = h("div", { class: "slices" });
    this.said = h("span", { class: "muted", role: "status" });
    this.metricPlace = h("span", { class: "fitting" });
    this.why = h("div", { class: "empty card", hidden: true });
    this.body = h("div", { class: "panels searchpanels", "data-count": 5 },
      card("History", this.history, h("span", { class: "muted" }, "the line is the best so far; rings are runs that are not done")), card("Importance", this.bars, this.compared),
      card("Parallel coordinates", this.parallel, [this.keptRuns, this.take, this.every], "wide"),
      card("Slices", this.slicesPlace, h("span", { class: "muted" }, "the metric along each parameter; later runs are brighter"), "wide"),
      card("Contour", this.contour, [...this.over, this.scaled], "wide"));
    show(this.place, h("div", { class: "bar" }, this.metricPlace, h("span", { class: "spacer" }), this.said), this.why, this.body);
    await this.load();
    return { changed: (ids) => this.changed(ids) };
  }

  drawing(title, plot) {
    return drawing({ title: `${this.sweep().title || this.name}: ${title}, ${this.found.label}`, shapes: (w, t, tone) => plot.shapes(w, t, tone) });
  }

  async load() {
    try {
      this.found = await get("search", { sweep: this.name, metric: this.kept.search.metric });
    } catch (error) { this.said.textContent = error.message; return; }
    this.choice();
    this.draw();
  }

  // Many changes in a row are one look.
  changed(ids) {
    if (!ids.size) { if (this.found) this.draw(); return; } // another theme
    if (!this.data.rows.some((row) => ids.has(row.id))) return;
    this.waiting ||= setTimeout(() => { this.waiting = 0; if (this.place.isConnected) this.load(); }, EVERY);
  }

  choice() {
    const names = [...new Set(this.data.rows.flatMap((row) => Object.keys(row.metrics)))].sort(), key = names.join("\u0000");
    if (this.metricPlace.dataset.key === key) return;
    this.metricPlace.dataset.key = key;
    show(this.metricPlace, choose("Metric", names.map((name) => [name, name]), this.found.metric, (name) => { this.kept.search.metric = name; this.load(); }).element);
  }

  draw() {
    const { found } = this;
    this.runs = this.data.rows.filter((row) => !row.trashed && row.id in found.values).map((row) => ({ row, value: Number(found.values[row.id]) }));
    const values = this.runs.map((run) => run.value);
    [this.low, this.high] = [Math.min(...values), Math.max(...values)];
    this.why.hidden = this.runs.length > 0;
    this.body.hidden = !this.runs.length;
    this.why.textContent = found.why;
    const running = this.data.rows.filter((row) => row.state === "running").length;
    this.said.textContent = `${thousands(this.runs.length)} of ${count(this.data.rows.filter((row) => !row.trashed).length, "run")} with a value${running ? `, ${running} running` : ""}`;
    if (!this.runs.length) return;
    const shares = found.importance;
    this.keys = [...found.varying].sort((a, b) => (shares[b] ?? 0) - (shares[a] ?? 0));
    this.axes = new Map(this.keys.map((key) => [key, this.axis(key)]));
    this.wide = logarithmic(values); // then all that shows the metric is logarithmic
    this.valueAxis = new Axis(found.label, { ...ends(values), log: this.wide });
    this.drawHistory();
    this.drawImportance(shares);
    this.drawParallel();
    this.drawSlices();
    this.drawContour();
  }

  // Numbers keep their values; if any value is something else, all are names.
  axis(key) {
    const given = this.runs.map(({ row }) => row.params[key]);
    const numbers = given.every((v) => typeof v === "number" && Number.isFinite(v));
    const few = [...new Set(given)].sort((a, b) => a - b);
    if (numbers) return Object.assign(new Axis(key, { ...ends(given), log: logarithmic(given, this.found.scales[key]), values: few.length <= FEW ? few : null }), { key });
    const names = [...new Map(given.map((v) => [words(v), v]))].sort(([a, x], [b, y]) => (typeof y === "number") - (typeof x === "number") || a.localeCompare(b, "en", { numeric: true }));
    return Object.assign(new Axis(key, { names: names.map(([name]) => name) }), { key });
  }

  at(row, axis) { return axis.names ? words(row.params[axis.key]) : row.params[axis.key]; }

  warp(value) { return this.wide ? Math.log10(value) : value; }

  // How good a value is: 1 is the best.
  good(value) {
    const part = (this.warp(value) - this.warp(this.low)) / (this.warp(this.high) - this.warp(this.low) || 1);
    return this.found.goal === "min" ? 1 - part : part;
  }

  facts(run) {
    return () => [[this.found.metric, String(run.value)], ["state", run.row.state], ...this.keys.filter((key) => key in run.row.params).map((key) => [key, inFull(run.row.params[key])])];
  }

  drawHistory() {
    const style = getComputedStyle(document.documentElement), sign = this.found.goal === "min" ? -1 : 1;
    const points = this.runs.map((run) => ({
      id: run.row.id, name: run.row.name, x: run.row.index, y: run.value, colour: style.getPropertyValue(`--${kindOf(run.row)}`).trim() || "gray",
      hollow: run.row.state !== "done", facts: this.facts(run),
    }));
    const line = [];
    for (const { row, value } of this.runs) if (!NEVER_BEST.has(row.state) && row.state !== "running" && (!line.length || sign * value > sign * line.at(-1)[1])) line.push([row.index, value]);
    const last = Math.max(...this.runs.map(({ row }) => row.index));
    if (line.length) line.push([last, line.at(-1)[1]]);
    const best = line.length ? `, the best ${number(line.at(-1)[1])}` : "";
    this.history.set(points, { x: new Axis("run", { low: 0, high: Math.max(1, last), whole: true }), y: this.valueAxis, line, words: `${count(points.length, "run")} by ${this.found.label}${best}` });
  }

  drawImportance(shares) {
    this.compared.textContent = `share of the variance that each parameter alone explains, over ${count(this.found.compared, "run")}`;
    const sorted = Object.entries(shares).sort(([, a], [, b]) => b - a);
    if (!sorted.length) { show(this.bars, h("li", { class: "muted" }, `needs ${this.found.least} runs with a value that differ in a parameter`)); return; }
    show(this.bars, sorted.map(([name, share]) => {
      const bar = h("span", { class: "share" });
      bar.style.width = `${Math.max(0.5, share * 100)}%`;
      return h("li", {}, h("span", { class: "what", title: name }, cut(name, LABEL, 1)), h("span", { class: "track" }, bar), h("span", { class: "num" }, `${Math.round(share * 100)} %`));
    }));
  }

  drawParallel() {
    const keys = this.keys.slice(0, AXES), dark = isDark();
    const axes = [...keys.map((key) => this.axes.get(key)), Object.assign(new Axis(this.found.label, this.valueAxis), { key: "\u0000value" })];
    const lines = this.runs.map((run) => {
      const at = { "\u0000value": run.value };
      for (const key of keys) at[key] = this.at(run.row, this.axes.get(key));
      return { id: run.row.id, name: run.row.name, at, good: this.good(run.value), colour: ramp(this.good(run.value), dark), facts: this.facts(run) };
    }).sort((a, b) => a.good - b.good);
    this.parallel.set(axes, lines);
  }

  tell(kept) {
    const some = this.parallel.brushes.size > 0;
    this.keptRuns.textContent = some ? `${count(kept.length, "run")} of ${this.parallel.lines.length} kept` : "drag along an axis to keep some runs";
    this.take.hidden = this.every.hidden = !some;
  }

  select() {
    this.kept.selected.clear();
    for (const line of this.parallel.kept) this.kept.selected.add(line.id);
    toast(`${count(this.kept.selected.size, "run")} selected: see Runs, Curves or Compare.`);
  }

  drawSlices() {
    const keys = this.keys.slice(0, SLICES), shape = keys.join("\u0000"), dark = isDark();
    if (this.slicesPlace.dataset.key !== shape) {
      this.slicesPlace.dataset.key = shape;
      this.slices = new Map(keys.map((key) => [key, new Scatter({ label: `Slice of ${key}`, open })]));
      show(this.slicesPlace, [...this.slices.values()].map((one) => one.plot));
    }
    const last = Math.max(1, ...this.runs.map(({ row }) => row.index));
    for (const [key, plot] of this.slices) {
      const axis = this.axes.get(key);
      plot.set(this.runs.map((run) => ({ id: run.row.id, name: run.row.name, x: this.at(run.row, axis), y: run.value, colour: ramp(run.row.index / last, dark), hollow: run.row.state === "running", facts: this.facts(run) })),
        { x: axis, y: this.valueAxis, words: `${this.found.label} of ${count(this.runs.length, "run")} along ${key}` });
    }
  }

  drawContour() {
    const { search } = this.kept;
    this.over.forEach((select, n) => {
      const axis = "xy"[n], now = this.keys.includes(search[axis]) ? search[axis] : this.keys[n] ?? this.keys[0];
      if (select.dataset.key !== this.keys.join("\u0000")) { select.dataset.key = this.keys.join("\u0000"); show(select, this.keys.map((key) => h("option", { value: key }, key))); }
      select.value = now;
    });
    const [x, y] = this.over.map((select) => this.axes.get(select.value));
    if (!x || !y || x === y) { this.contour.set([], { x: x ?? this.valueAxis, y: this.valueAxis, words: "choose two parameters" }); show(this.scaled, "choose two different parameters"); return; }
    const upright = Object.assign(new Axis(y.title, y), { key: y.key, shown: true }), dark = isDark(), { ink } = tones();
    const points = this.runs.map((run) => ({ id: run.row.id, name: run.row.name, x: this.at(run.row, x), y: this.at(run.row, upright), value: this.warp(run.value), colour: ink, hollow: true, facts: this.facts(run) }));
    const best = (part) => ramp(this.found.goal === "min" ? 1 - part : part, dark);
    this.contour.set(points, { x, y: upright, fields: fields(points, x, upright, best), words: `${this.found.label} of ${count(points.length, "run")} over ${x.title} and ${y.title}` });
    const bar = h("i", { class: "gradient" });
    bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(best).join(", ")})`;
    show(this.scaled, number(this.low), bar, number(this.high));
  }
}

const words = (value) => text(value) || "none";

function ends(values) {
  const [low, high] = roomy(Math.min(...values), Math.max(...values), false);
  return { low, high };
}
