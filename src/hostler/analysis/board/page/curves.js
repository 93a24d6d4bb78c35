// Curves of a sweep's runs: those selected, or all that the filter lets through.

import { Chart, colour } from "./chart.js";
import { get } from "./data.js";
import { h, show } from "./dom.js";
import { shown } from "./sweep.js";
import { count, number, text } from "./words.js";

const MOST = 400;

export async function curvesView({ name, data, kept, place, sweep }) {
  const chart = new Chart({ label: `Curves of ${name}`, open: (id) => { location.hash = `#/run/${encodeURIComponent(id)}`; } });
  const metric = h("select", { "aria-label": "Metric" }), by = h("select", { "aria-label": "Colour by" });
  const logX = toggle("log x"), logY = toggle("log y");
  const whole = h("button", { type: "button", onclick: () => chart.reset() }, "Show all");
  const said = h("span", { class: "muted", role: "status" });
  let curves = {}, fetched = 0;
  kept.curves ??= { metric: "", by: "", logX: false, logY: false };
  const chosen = () => {
    const rows = kept.selected.size ? data.rows.filter((row) => kept.selected.has(row.id)) : shown({ data, kept });
    return rows.filter((row) => row.attempt).slice(0, MOST);
  };
  const options = () => {
    const names = [...new Set(data.rows.flatMap((row) => Object.keys(row.metrics)))].sort();
    fill(metric, names.map((n) => [n, n]), kept.curves.metric || sweep().metric || names[0] || "");
    const params = [...new Set(data.rows.flatMap((row) => Object.keys(row.params)))];
    const varying = params.filter((p) => new Set(data.rows.map((row) => text(row.params[p]))).size > 1);
    fill(by, [["", "run"], ["state", "state"], ...varying.map((p) => [`p.${p}`, p])], kept.curves.by);
  };
  const draw = () => {
    const rows = chosen().filter((row) => curves[row.id]);
    const [paint, groups] = painter(rows, kept.curves.by);
    const lines = rows.map((row) => ({ id: row.id, name: row.name, x: curves[row.id].x, y: curves[row.id].y.map(Number), colour: paint(row) }));
    chart.set(lines, { logX: kept.curves.logX, logY: kept.curves.logY, groups, y: metric.value });
    const points = rows.reduce((sum, row) => sum + curves[row.id].points, 0);
    said.textContent = `${count(lines.length, "curve")}, ${count(points, "point")}${chosen().length >= MOST ? `, the first ${MOST} runs` : ""}`;
  };
  const load = async (only) => {
    const rows = chosen().filter((row) => !only || only.has(row.id));
    if (!rows.length) { draw(); return; }
    const ticket = ++fetched;
    try {
      const answer = await get("curves", { sweep: name, index: spans(rows.map((row) => row.index)), metric: metric.value, most: rows.length > 60 ? 200 : 600 });
      if (only ? answer.metric !== metric.value : ticket !== fetched) return;
      curves = only ? { ...curves, ...answer.curves } : answer.curves;
    } catch (error) { said.textContent = error.message; return; }
    draw();
  };
  const keep = () => { kept.curves = { metric: metric.value, by: by.value, logX: pressed(logX), logY: pressed(logY) }; };
  metric.addEventListener("change", () => { keep(); chart.reset(); load(); });
  by.addEventListener("change", () => { keep(); draw(); });
  for (const button of [logX, logY]) button.addEventListener("click", () => { press(button, !pressed(button)); keep(); chart.reset(); draw(); });
  press(logX, kept.curves.logX);
  press(logY, kept.curves.logY);
  options();
  show(place, h("div", { class: "bar" }, h("label", { class: "field" }, "Metric", metric), h("label", { class: "field" }, "Colour by", by), logX, logY, whole, h("span", { class: "spacer" }), said), chart.element);
  await load();
  return { changed: (ids) => { if (data.rows.some((row) => ids.has(row.id))) { options(); load(ids); } } };
}

const toggle = (title) => h("button", { type: "button", "aria-pressed": "false" }, title);
const pressed = (button) => button.getAttribute("aria-pressed") === "true";
const press = (button, on) => button.setAttribute("aria-pressed", String(on));

function fill(select, pairs, value) {
  const key = pairs.map(([v]) => v).join("\u0000");
  if (select.dataset.key === key) return;
  const now = select.dataset.key === undefined ? value : select.value;
  select.dataset.key = key;
  show(select, pairs.map(([v, title]) => h("option", { value: v }, title)));
  if (pairs.some(([v]) => v === now)) select.value = now;
}

// A colour for each run: its own, its state's, or that of a parameter's value; and the legend.
function painter(rows, by) {
  const dark = document.documentElement.dataset.theme === "dark";
  if (!by) {
    const place = new Map(rows.map((row, n) => [row.id, n]));
    const groups = rows.length <= 12 ? rows.map((row, n) => ({ name: row.name, colour: colour(n, dark) })) : [];
    return [(row) => colour(place.get(row.id), dark), groups];
  }
  const value = (row) => (by === "state" ? row.state : row.params[by.slice(2)]);
  const values = [...new Set(rows.map(value))];
  if (values.length > 10 && values.every((v) => typeof v === "number")) return ramp(values, value, dark);
  values.sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : text(a).localeCompare(text(b))));
  const place = new Map(values.map((v, n) => [v, n]));
  return [(row) => colour(place.get(value(row)), dark), values.slice(0, 40).map((v, n) => ({ name: text(v) || "none", colour: colour(n, dark) }))];
}

function ramp(values, value, dark) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const log = low > 0 && high / low > 50;
  const part = (v) => (log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low || 1));
  const tone = (f) => `hsl(${260 - 215 * f} 60% ${dark ? 64 : 42}%)`;
  const marks = [0, 0.25, 0.5, 0.75, 1].map((f) => ({ name: number(log ? low * (high / low) ** f : low + (high - low) * f), colour: tone(f) }));
  return [(row) => tone(part(value(row))), marks];
}

// [0, 1, 2, 7] to "0-2,7".
function spans(indices) {
  const sorted = [...indices].sort((a, b) => a - b), parts = [];
  for (const n of sorted) {
    const last = parts.at(-1);
    if (last && last[1] + 1 === n) last[1] = n; else parts.push([n, n]);
  }
  return parts.map(([a, b]) => (a === b ? a : `${a}-${b}`)).join(",");
}
