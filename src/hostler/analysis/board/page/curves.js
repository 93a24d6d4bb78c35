// Curves of a sweep's runs: those selected, or all that the filter lets through. What is looked at stands in the address.

import { Chart } from "./chart.js";
import { h, show } from "./dom.js";
import { parse } from "./filter.js";
import { colour, isDark, places, ramp } from "./plots/colours.js";
import { choices, choose, toggle } from "./plots/controls.js";
import { copyButtons, drawing } from "./plots/copy.js";
import { BANDS, mean } from "./plots/groups.js";
import { fetchCurves } from "./plots/points.js";
import { Series, smooth } from "./plots/series.js";
import { inFull, swatch } from "./plots/tip.js";
import { ALONG, fresh, read, write } from "./plots/view.js";
import { shown } from "./sweep.js";
import { count, number, text } from "./words.js";

const MOST = 400; // runs
const PANELS = 12, ALONE = 4; // plots; those that a page of one run begins with
const LEGEND = 200; // entries
const TITLES = { step: "step", epoch: "epoch", relative: "time since its start", time: "time" };
const KINDS = { relative: "duration", time: "time" };

export async function curvesView(context) {
  return new CurvesPage(context).begin();
}

class CurvesPage {
  constructor({ name, data, kept, place, sweep }) {
    Object.assign(this, { name, data, kept, place, sweep, panels: new Map(), visit: 0, trouble: new Map() });
    const link = this.link = read(location.hash);
    if (link) this.adopt(link);
    this.view = kept.curves = link?.view ?? kept.curves ?? fresh();
    this.hash = location.hash.split("?")[0];
  }

  // The runs that an address names are the selected ones; of a long table the last of them may come later.
  adopt({ runs, filter, states }) {
    if (this.data.whole) this.link = null;
    if (runs) {
      const wanted = new Set(runs);
      this.kept.selected.clear();
      for (const row of this.data.rows) if (wanted.has(row.index)) this.kept.selected.add(row.id);
    }
    if (filter !== null) {
      this.kept.filter = filter;
      try { this.kept.test = parse(filter); } catch { /* the page of the runs says what cannot be read */ }
    }
    if (states.length) this.kept.states = new Set(states);
  }

  async begin() {
    this.controls();
    this.grid = h("div", { class: "panels" });
    this.legend = h("div", { class: "legend keys", role: "group", "aria-label": "Legend", tabindex: 0 });
    this.none = h("div", { class: "empty card", hidden: true }, "No curves yet: no run here has logged a metric.");
    show(this.place, this.bar, this.none, this.grid, h("div", { class: "card" }, this.legend));
    this.options();
    this.note();
    await this.load();
    return { changed: (ids) => this.changed(ids) };
  }

  controls() {
    const again = () => { this.forget(); this.note(); this.load(); };
    const redraw = () => { this.note(); this.draw(); };
    const { view } = this;
    this.metrics = choices("Metrics", "metrics", (names) => { view.metrics = names.slice(0, PANELS); again(); });
    this.along = choose("X", ALONG, view.along, (value) => { view.along = value; view.zoom = null; again(); });
    this.by = choices("Group by", "parameters", (names) => { view.by = names; view.off.clear(); redraw(); });
    this.band = choose("Band", BANDS, view.band, (value) => { view.band = value; redraw(); });
    const slider = h("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: view.smooth, "aria-label": "Smoothing" });
    const amount = h("output", {}, number(view.smooth));
    slider.addEventListener("input", () => { view.smooth = Number(slider.value); amount.textContent = slider.value; redraw(); });
    const log = (axis) => toggle(`log ${axis.at(-1).toLowerCase()}`, view[axis], (on) => { view[axis] = on; view.zoom = null; view.tall.clear(); redraw(); });
    this.said = h("span", { class: "muted", role: "status" });
    this.bar = h("div", { class: "bar curvebar" }, this.metrics.element, this.along.element, h("label", { class: "field" }, "Smoothing", slider, amount),
      this.by.element, this.band.element, log("logX"), log("logY"), h("button", { type: "button", onclick: () => this.whole() }, "Show all"), h("span", { class: "spacer" }), this.said);
  }

  rows() {
    const rows = this.kept.selected.size ? this.data.rows.filter((row) => this.kept.selected.has(row.id)) : shown(this);
    return rows.filter((row) => row.attempt).slice(0, MOST);
  }

  // Metrics and parameters there are to choose from: they may become more while one looks.
  options() {
    const names = new Set(), values = new Map();
    for (const row of this.data.rows) {
      for (const name in row.metrics) names.add(name);
      for (const name in row.params) {
        if (!values.has(name)) values.set(name, new Set());
        if (values.get(name).size < 2) values.get(name).add(text(row.params[name]));
      }
    }
    const own = this.sweep().metric, sorted = [...names].sort((a, b) => (b === own) - (a === own) || a.localeCompare(b));
    this.view.metrics = this.view.metrics.filter((name) => names.has(name));
    if (!this.view.metrics.length) this.view.metrics = sorted.slice(0, this.kept.single ? ALONE : 1);
    const complete = (name) => values.get(name).size > 1 || this.data.rows.some((row) => !(name in row.params));
    this.varying = [...values.keys()].filter(complete);
    this.metrics.fill(sorted, this.view.metrics);
    this.by.fill([...this.varying, "state"], this.view.by);
    this.epoch = sorted.find((name) => name === "epoch") ?? sorted.find((name) => /(^|[/_.])epochs?$/.test(name));
    this.along.disable("epoch", !this.epoch, "no run has logged an epoch");
  }

  // Keeps the address in step with the view.
  note() {
    clearTimeout(this.noting);
    this.noting = setTimeout(() => {
      if (this.link || location.hash.split("?")[0] !== this.hash) return;
      const selected = this.data.rows.filter((row) => this.kept.selected.has(row.id)).map((row) => row.index);
      history.replaceState(null, "", `${this.hash}?${write(this.view, { runs: selected, filter: this.kept.filter, states: [...this.kept.states] })}`);
    }, 150);
    this.by.element.hidden = Boolean(this.kept.single);
    this.band.element.hidden = !this.view.by.length;
  }

  forget() {
    for (const panel of this.panels.values()) panel.curves = new Map();
  }

  panel(metric) {
    if (this.panels.has(metric)) return this.panels.get(metric);
    const zoomed = (zoom) => {
      this.view.zoom = zoom?.x ?? null;
      zoom ? this.view.tall.set(metric, zoom.y) : this.view.tall.clear();
      for (const [name, other] of this.panels) if (name !== metric) other.chart.follow(this.zoomOf(name));
      this.note();
    };
    const near = (key) => { for (const [name, other] of this.panels) if (name !== metric) other.chart.point(key); };
    const chart = new Chart({ label: `Curves of ${this.name}`, open: (id) => { location.hash = `#/run/${encodeURIComponent(id)}`; }, zoomed, near });
    if (this.zoomOf(metric)) chart.follow(this.zoomOf(metric));
    const best = h("span", { class: "muted best" });
    const make = () => drawing({ title: `${this.sweep().title || this.name}: ${metric}`, shapes: (w, t, tone) => chart.shapes(w, t, tone), legend: this.keys ?? [] });
    const element = h("section", { class: "panel card", "aria-label": metric }, h("div", { class: "panelhead" }, h("h2", {}, metric), best, copyButtons(metric, make)), chart.plot);
    const made = { metric, chart, element, best, curves: new Map() };
    this.panels.set(metric, made);
    return made;
  }

  zoomOf(metric) {
    const { zoom, tall } = this.view;
    return zoom || tall.has(metric) ? { x: zoom ?? undefined, y: tall.get(metric) } : null;
  }

  whole() {
    this.view.zoom = null;
    this.view.tall.clear();
    for (const { chart } of this.panels.values()) chart.follow(null);
    this.note();
  }

  // Curves of all runs, or only of those that have changed.
  async load(only) {
    const visit = only ? this.visit : ++this.visit;
    const still = () => visit === this.visit && this.grid.isConnected;
    for (const name of [...this.panels.keys()]) if (!this.view.metrics.includes(name)) this.panels.delete(name);
    const panels = this.view.metrics.map((name) => this.panel(name));
    const key = this.view.metrics.join("\u0000");
    if (this.laid !== key) { this.laid = key; show(this.grid, panels.map((panel) => panel.element)); this.grid.dataset.count = panels.length; }
    const along = { epoch: this.epoch ?? "step", relative: "time" }[this.view.along] ?? this.view.along;
    try {
      for (const panel of panels) {
        const rows = this.rows().filter((row) => (only ? only.has(row.id) : !panel.curves.has(row.id)));
        await fetchCurves(this.name, rows, panel.metric, along, (curves, trouble) => {
          for (const [id, curve] of curves) panel.curves.set(id, this.placed(curve));
          for (const id in trouble) this.trouble.set(id, trouble[id]);
          this.draw();
        }, still);
      }
    } catch (error) { this.said.textContent = error.message; return; }
    if (still()) this.draw();
  }

  placed({ x, y, total }) {
    const first = this.view.along === "relative" && x.length ? x[0] : 0;
    return { raw: new Series(first ? x.map((v) => v - first) : x, y), total };
  }

  changed(ids) {
    if (ids.size && !this.data.rows.some((row) => ids.has(row.id))) return;
    if (this.link) { this.adopt(this.link); this.note(); }
    this.options();
    ids.size ? this.load(ids) : this.draw(); // none: another theme
  }

  // At most once a frame, however many answers come.
  draw() {
    this.asked ||= requestAnimationFrame(() => { this.asked = 0; this.paint(); });
  }

  paint() {
    const rows = this.rows(), best = this.sweep().best;
    const keyed = this.view.by.length ? this.groups(rows) : this.singles(rows);
    this.keys = keyed.map(({ key, name, colour, strong }) => ({ key, name: strong ? `★ ${name}` : name, colour }));
    let lines = 0, points = 0;
    for (const panel of this.panels.values()) {
      const made = keyed.filter(({ key }) => !this.view.off.has(key)).flatMap((one) => this.lines(one, panel));
      panel.chart.set(made, { logX: this.view.logX, logY: this.view.logY, y: panel.metric, xTitle: TITLES[this.view.along], kind: KINDS[this.view.along] });
      show(panel.best, best && !this.kept.single && panel.metric === this.sweep().metric ? ["★ ", h("a", { href: `#/run/${encodeURIComponent(best.id)}` }, best.name), ` ${number(best.value)}`] : null);
      lines += rows.filter((row) => panel.curves.has(row.id)).length;
      for (const row of rows) points += panel.curves.get(row.id)?.total ?? 0;
    }
    this.none.hidden = this.view.metrics.length > 0;
    this.drawLegend(keyed);
    const bad = rows.filter((row) => this.trouble.has(row.id)).length;
    this.said.textContent = [count(lines, "curve"), count(points, "point"), rows.length >= MOST ? `the first ${MOST} runs` : "", bad ? `${count(bad, "run")} cannot be read` : ""].filter(Boolean).join(", ");
    this.said.title = bad ? [...this.trouble.values()][0] : "";
  }

  // One entry for each run.
  singles(rows) {
    const place = places(rows.map((row) => row.index)), dark = isDark(), best = this.sweep().best?.id;
    return rows.map((row) => ({ key: String(row.index), name: row.name, rows: [row], colour: colour(place.get(row.index), dark), strong: row.id === best }));
  }

  // One entry for each combination of the parameters' values.
  groups(rows) {
    const value = (row, name) => (name === "state" ? row.state : row.params[name]);
    const found = new Map();
    for (const row of rows) {
      const values = this.view.by.map((name) => value(row, name));
      const key = this.view.by.map((name, n) => `${name}=${text(values[n]) || "none"}`).join(", ");
      if (!found.has(key)) found.set(key, { key, name: key, values, rows: [] });
      found.get(key).rows.push(row);
    }
    const order = (a, b) => { for (const n of a.values.keys()) { const d = compared(a.values[n], b.values[n]); if (d) return d; } return 0; };
    const sorted = [...found.values()].sort(order), dark = isDark(), best = this.sweep().best?.id;
    const graded = this.view.by.length === 1 && sorted.length > 6 && sorted.every((one) => typeof one.values[0] === "number");
    return sorted.map((one, n) => ({ ...one, colour: graded ? ramp(n / (sorted.length - 1), dark) : colour(n, dark), strong: one.rows.some((row) => row.id === best) }));
  }

  // What a panel draws of an entry.
  lines(entry, panel) {
    const found = entry.rows.filter((row) => panel.curves.get(row.id)?.raw.x.length).map((row) => ({ row, series: this.smoothed(panel.curves.get(row.id)) }));
    const one = { key: entry.key, colour: entry.colour, strong: entry.strong };
    if (!found.length) return [];
    if (found.length === 1 || !this.view.by.length) {
      const [{ row, series }] = found;
      const raw = panel.curves.get(row.id).raw;
      return [{ ...one, id: row.id, name: row.name, series, faint: this.view.smooth ? raw : null, facts: this.facts(row) }];
    }
    const { band } = this.view, made = mean(found.map(({ series }) => series), band);
    const facts = [["runs", String(found.length)]];
    return [{
      ...one, name: entry.name, series: new Series(made.x, made.y), facts,
      band: ["runs", "none"].includes(band) ? null : { low: made.low, high: made.high },
      members: band === "runs" ? found.map(({ series }) => series) : null,
    }];
  }

  // Computed once for each curve and weight.
  smoothed(curve) {
    if (!this.view.smooth) return curve.raw;
    if (curve.weight !== this.view.smooth) Object.assign(curve, { weight: this.view.smooth, soft: new Series(curve.raw.x, smooth(curve.raw.y, this.view.smooth)) });
    return curve.soft;
  }

  facts(row) {
    return [["state", row.state], ...this.varying.filter((name) => name in row.params).map((name) => [name, inFull(row.params[name])])];
  }

  drawLegend(keyed) {
    const key = JSON.stringify([keyed.map((one) => [one.key, one.colour, one.strong, one.rows.length]), [...this.view.off]]);
    if (this.legend.dataset.key === key) return;
    this.legend.dataset.key = key;
    this.legend.parentElement.hidden = !keyed.length || Boolean(this.kept.single);
    const focused = this.legend.contains(document.activeElement) ? document.activeElement.dataset.entry : null;
    const point = (name) => () => { for (const { chart } of this.panels.values()) chart.point(name); };
    const flip = (name) => () => { this.view.off.delete(name) || this.view.off.add(name); this.note(); this.draw(); };
    const entry = (one) => h("button", {
      type: "button", "data-entry": one.key, "aria-pressed": String(!this.view.off.has(one.key)), title: this.view.off.has(one.key) ? "Show" : "Hide", onclick: flip(one.key),
      onpointerenter: point(one.key), onpointerleave: point(null), onfocus: point(one.key), onblur: point(null),
    }, swatch(one.colour), `${one.strong ? "★ " : ""}${one.name}`, this.view.by.length ? h("span", { class: "muted" }, ` ${one.rows.length}`) : null);
    const first = this.view.by.length ? keyed : [...keyed].sort((a, b) => b.strong - a.strong); // the best run is in sight however many there are
    show(this.legend, first.slice(0, LEGEND).map(entry), keyed.length > LEGEND ? h("span", {}, `${count(keyed.length - LEGEND, "more")}`) : null);
    if (focused) [...this.legend.children].find((one) => one.dataset.entry === focused)?.focus();
  }
}

// Numbers in order, then texts, then nothing.
function compared(a, b) {
  const rank = (v) => (typeof v === "number" ? 0 : v === undefined || v === null ? 2 : 1);
  return rank(a) - rank(b) || (typeof a === "number" ? a - b : text(a).localeCompare(text(b), "en", { numeric: true }));
}
