// The columns of a table of runs: which there are, which are shown, how wide, which stay in sight; kept by the browser.

import { h, show } from "./dom.js";
import { runPlace } from "./parts.js";
import { byName, duration, money, number, seconds, stateOf, text } from "./words.js";

const METRICS = 6, PARAMS = 12; // shown unless somebody chooses others
const MEASURED = 40; // rows whose values say how wide a column is
const NARROW = matchMedia("(max-width: 600px)"); // there, the value that runs are sorted by stands beside their names

// All columns of these rows, in their order; `usual` are shown unless somebody chose otherwise.
export function columnsOf(rows, sweep) {
  const metrics = new Set(), params = new Map();
  for (const row of rows) {
    for (const name in row.metrics) metrics.add(name);
    for (const name in row.params) {
      const one = params.get(name) ?? { first: row.params[name], varies: false, count: 0, number: false, longest: 0 };
      one.varies ||= one.first !== row.params[name] && text(one.first) !== text(row.params[name]);
      one.number ||= typeof row.params[name] === "number";
      if (one.count++ < MEASURED) one.longest = Math.max(one.longest, text(row.params[name]).length);
      params.set(name, one);
    }
  }
  const several = (of) => new Set(rows.map(of).filter(Boolean)).size > 1;
  const any = (test) => rows.some(test);
  const own = sweep.metric && metrics.has(sweep.metric) ? [sweep.metric] : [];
  const others = [...metrics].filter((name) => name !== sweep.metric).sort(byName);
  const varying = [...params].filter(([, one]) => one.varies || one.count < rows.length || rows.length === 1).map(([name]) => name);
  const constant = [...params.keys()].filter((name) => !varying.includes(name));
  const longest = rows.reduce((most, row) => Math.max(most, row.name.length), 0);
  const stated = rows.reduce((most, row) => Math.max(most, stateOf(row).words.length), 0);
  const state = { key: "state", title: "State", width: stated > 10 ? Math.min(260, Math.round(stated * 9.2) + 34) : 128, value: (r) => r.state, text: (r) => r.state, fill: stateCell, hover: (r) => r.failure ?? stateOf(r).words, usual: true };
  const last = own.map((name) => metric(name, true));
  const ranked = any((r) => r.ranked) ? [{ key: "value", title: "Ranked by", width: wide("Ranked by", 120), num: true, value: (r) => r.value, text: (r) => number(r.value), hover: (r) => `${r.value ?? ""} ${r.ranked ?? ""}`.trim(), usual: true }] : [];
  const [first, second] = [...ranked, ...last]; // the table is sorted by the first of them
  return [
    { key: "name", title: "Run", width: Math.max(110, Math.min(360, Math.round(longest * 9.2) + 26)), value: (r) => r.index, text: (r) => r.name, fill: link, usual: true, pinned: true },
    ...(NARROW.matches ? [first, state, second].filter(Boolean) : [state, ...last, ...ranked]),
    ...varying.map((name, n) => param(name, params.get(name), n < PARAMS)),
    ...others.map((name, n) => metric(name, n < METRICS)),
    { key: "step", title: "Step", width: 76, num: true, value: (r) => r.step, text: (r) => number(r.step), usual: any((r) => r.step) },
    { key: "seconds", title: "Time", width: 92, num: true, value: seconds, text: (r) => duration(seconds(r)), hover: (r) => `${seconds(r) ?? ""} s`, usual: true },
    { key: "cost", title: "Cost", width: 80, num: true, value: (r) => r.cost, text: (r) => money(r.cost), usual: any((r) => typeof r.cost === "number") },
    { key: "attempt", title: "Tries", width: 68, num: true, value: (r) => r.attempt, text: (r) => (r.attempt ? String(r.attempt) : ""), usual: any((r) => r.attempt > 1) },
    { key: "host", title: "Host", width: 120, value: (r) => r.host, text: (r) => r.host ?? "", usual: several((r) => r.host) },
    { key: "tags", title: "Tags", width: 120, value: (r) => (r.tags ?? []).join(" "), text: (r) => (r.tags ?? []).join(" "), usual: any((r) => r.tags?.length) },
    ...constant.map((name) => param(name, params.get(name), false)),
  ];
}

// Wide enough for the title with its arrow, and for what stands under it.
const wide = (title, least, longest = 0) => Math.max(least, Math.min(240, Math.round(Math.max(title.length * 7.6 + 48, longest * 9.4 + 26))));
const metric = (name, usual) => ({ key: `metric.${name}`, title: name, width: wide(name, 112), num: true, value: (r) => r.metrics[name], text: (r) => number(r.metrics[name]), usual });
const param = (name, one, usual) => ({ key: `param.${name}`, title: name, width: wide(name, 84, one.longest), num: one.number, value: (r) => r.params[name], text: (r) => text(r.params[name]), usual });

// The link of a row: made once, then told of another run.
function link(cell, row) {
  if (cell.run === row.id && cell.shown === row.name) return;
  cell.run = row.id;
  cell.shown = row.name;
  if (!cell.firstChild) cell.append(h("a", { tabindex: -1 }, h("span", { class: "stem" }), ""));
  const made = cell.firstChild, [stem, rest] = made.childNodes, at = Math.max(0, row.name.lastIndexOf("/"));
  made.setAttribute("href", runPlace(row));
  made.setAttribute("aria-label", row.name); // in one piece
  stem.textContent = row.name.slice(0, at);
  rest.data = row.name.slice(at);
  const room = at ? `calc(100% - ${row.name.length - at}ch)` : ""; // where it is narrow, the number stays
  if (stem.style.maxWidth !== room) stem.style.maxWidth = room;
}

function stateCell(cell, row) {
  const { words, tone } = stateOf(row);
  if (!cell.firstChild) cell.append(h("span", {}, ""));
  if (cell.shown === words && cell.tone === tone) return;
  cell.tone = tone;
  cell.firstChild.className = `state s-${tone}`;
  cell.firstChild.textContent = cell.shown = words;
}

// What somebody has chosen for a sweep's table.
export class Choice {
  constructor(sweep) {
    this.place = `columns ${sweep}`;
    try { this.kept = JSON.parse(localStorage.getItem(this.place)) ?? {}; } catch { this.kept = {}; }
    for (const part of ["shown", "widths", "pinned"]) if (typeof this.kept[part] !== "object" || !this.kept[part]) this.kept[part] = {};
  }

  // Of all columns those to show, the pinned ones first.
  of(columns) {
    const { shown, widths, pinned } = this.kept;
    const found = columns.filter((one) => shown[one.key] ?? one.usual);
    for (const one of found) {
      one.width = Number(widths[one.key]) || one.width;
      one.pinned = pinned[one.key] ?? one.pinned ?? false;
    }
    return [...found.filter((one) => one.pinned), ...found.filter((one) => !one.pinned)];
  }

  isShown(column) { return this.kept.shown[column.key] ?? !!column.usual; }
  isPinned(column) { return this.kept.pinned[column.key] ?? !!column.pinned; }

  set(part, key, value) {
    this.kept[part][key] = value;
    localStorage.setItem(this.place, JSON.stringify(this.kept));
  }

  reset() {
    this.kept = { shown: {}, widths: {}, pinned: {} };
    localStorage.removeItem(this.place);
  }
}

// The menu that chooses them. `all()` are the columns there are; `changed` draws the table again.
export function chooser(choice, all, changed) {
  const list = h("div", { class: "choices" });
  const line = (column) => {
    const flip = (part, is) => (event) => { choice.set(part, column.key, event.target.checked); if (is) draw(); changed(); };
    const kind = column.key.startsWith("param.") ? "parameter" : column.key.startsWith("metric.") ? "metric" : "";
    return h("div", { class: "choice" },
      h("label", {}, h("input", { type: "checkbox", checked: choice.isShown(column), onchange: flip("shown") }), h("span", { class: "name" }, column.title), " ", h("span", { class: "muted" }, kind)),
      h("label", { class: "muted", title: "Keep in sight" }, h("input", { type: "checkbox", "aria-label": `Pin ${column.title}`, checked: choice.isPinned(column), onchange: flip("pinned") }), "pin"));
  };
  const draw = () => show(list, all().map(line));
  const menu = h("details", { class: "menu" }, h("summary", { role: "button" }, "Columns"),
    h("div", { class: "panel card" }, list, h("div", { class: "bar" },
      h("button", { type: "button", class: "quiet", onclick: () => { choice.reset(); draw(); changed(); } }, "Back to the usual ones"))));
  menu.addEventListener("toggle", () => { if (menu.open) draw(); });
  menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { menu.open = false; menu.firstChild.focus(); } });
  document.addEventListener("pointerdown", (event) => { if (menu.open && !menu.contains(event.target)) menu.open = false; });
  return menu;
}
