// One sweep: its runs, curves, comparison and errors.

import { known, table } from "./data.js";
import { h, show } from "./dom.js";
import { parse } from "./filter.js";
import { Grid } from "./grid.js";
import { act, canRetry, canStop, errorList, progress, runLink } from "./parts.js";
import { STATES, count, duration, number, seconds, text } from "./words.js";

const TABS = [["runs", "Runs"], ["curves", "Curves"], ["compare", "Compare"], ["errors", "Errors"]];
const memory = new Map(); // sweep → what is filtered and selected, kept while one looks elsewhere

export async function sweepView(main, name, asked) {
  const tab = TABS.some(([key]) => key === asked) ? asked : "runs";
  document.title = `${name} · hostler`;
  const kept = memory.get(name) ?? { filter: "", states: new Set(), selected: new Set(), sort: null };
  memory.set(name, kept);
  const data = await table(name);
  const head = h("div", { class: "head" });
  const place = h("div", { class: "place" });
  Object.assign(place.style, { flex: "1", minHeight: "0", display: "flex", flexDirection: "column" });
  const link = ([key, title]) => h("a", { href: `#/sweep/${encodeURIComponent(name)}/${key}`, "aria-current": key === tab ? "page" : null }, title);
  show(main, head, h("nav", { class: "tabs", "aria-label": "Of this sweep" }, TABS.map(link)), place);
  const drawHead = () => {
    const one = known.overview.sweeps.find((s) => s.name === name);
    if (!one) {
      if (!known.overview.reading) show(head, h("h1", {}, name), h("span", { class: "s-failed" }, "is no longer in the store"));
      return;
    }
    const bar = progress(one.counts, one.runs);
    bar.style.flex = "1";
    show(head, h("h1", {}, one.title || name), bar,
      one.best ? h("span", {}, `best ${one.metric} `, h("a", { href: `#/run/${encodeURIComponent(one.best.id)}` }, number(one.best.value))) : null,
      one.eta ? h("span", { class: "muted" }, `${duration(one.eta)} left`) : null,
      one.halted ? h("span", { class: "s-failed" }, `halted: ${one.halted}`) : null,
      one.trouble ? h("span", { class: "s-failed" }, one.trouble) : null);
  };
  drawHead();
  const context = { name, data, kept, place, sweep: () => known.overview.sweeps.find((s) => s.name === name) ?? {} };
  const view = await { runs: runsView, curves: curvesView, compare: compareView, errors: errorsView }[tab](context);
  return { changed: (ids) => { drawHead(); view?.changed?.(ids); } };
}

// The runs that the filter and the state buttons let through.
export function shown({ data, kept }) {
  const test = parse(kept.filter);
  return data.rows.filter((row) => !row.trashed && (!kept.states.size || kept.states.has(row.state)) && test(row));
}

function runsView({ name, data, kept, place, sweep }) {
  const total = h("span", { class: "muted", role: "status" });
  const stop = h("button", { type: "button", class: "danger", onclick: () => act("stop", chosen()) }, "Stop");
  const retry = h("button", { type: "button", onclick: () => act("retry", chosen()) }, "Retry");
  const none = h("button", { type: "button", class: "quiet", onclick: () => { kept.selected.clear(); grid.apply(); } }, "Clear selection");
  const search = h("input", {
    type: "search", id: "filter", "aria-label": "Filter runs", value: kept.filter, spellcheck: "false",
    placeholder: "Filter: lr<0.01 state=done model~resnet -seed=3", oninput: () => { kept.filter = search.value; refilter(); },
  });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "States" });
  const chosen = () => data.rows.filter((row) => kept.selected.has(row.id));
  const grid = new Grid({
    label: `Runs of ${name}`, columns: [], selected: kept.selected,
    open: (row) => { location.hash = `#/run/${encodeURIComponent(row.id)}`; },
    changed: () => count_(),
  });
  const count_ = () => {
    const picked = kept.selected.size ? `, ${kept.selected.size.toLocaleString("en")} selected` : "";
    const on = data.whole && !known.overview.reading ? "" : ", reading on";
    const there = data.rows.reduce((sum, row) => sum + !row.trashed, 0);
    const more = sweep().waiting ? `, ${sweep().waiting.toLocaleString("en")} more wait` : "";
    total.textContent = `${grid.rows.length.toLocaleString("en")} of ${count(data.whole ? there : Math.max(there, data.total), "run")}${more}${on}${picked}`;
    const rows = kept.selected.size ? chosen() : [];
    stop.disabled = !rows.some(canStop) || !known.overview.writable;
    retry.disabled = !rows.some(canRetry) || !known.overview.writable;
    none.hidden = !kept.selected.size;
    kept.sort = grid.sort;
  };
  const refilter = () => {
    const test = parse(kept.filter);
    grid.setFilter((row) => (!kept.states.size || kept.states.has(row.state)) && test(row));
  };
  const drawChips = () => {
    const counts = {};
    for (const row of data.rows) if (!row.trashed) counts[row.state] = (counts[row.state] ?? 0) + 1;
    for (const name of kept.states) counts[name] ??= 0;
    const key = STATES.filter((s) => s in counts).map((s) => `${s}${counts[s]}${kept.states.has(s)}`).join();
    if (chips.dataset.key === key) return;
    chips.dataset.key = key;
    const focused = chips.contains(document.activeElement) ? document.activeElement.dataset.state : null;
    show(chips, STATES.filter((s) => s in counts).map((s) => h("button", {
      type: "button", class: `s-${s}`, "data-state": s, "aria-pressed": String(kept.states.has(s)),
      onclick: () => { kept.states.has(s) ? kept.states.delete(s) : kept.states.add(s); drawChips(); refilter(); },
    }, `${s} ${counts[s].toLocaleString("en")}`)));
    if (focused) chips.querySelector(`[data-state="${focused}"]`)?.focus();
  };
  show(place, h("div", { class: "bar" }, search, chips), h("div", { class: "bar" }, total, h("span", { class: "spacer" }), none, retry, stop), grid.element);
  let shape = "";
  const columns = () => {
    const found = columnsOf(data.rows, sweep());
    const key = found.map((c) => c.key).join("\u0000");
    if (key !== shape) { shape = key; grid.setColumns(found); }
  };
  columns();
  grid.sort = kept.sort;
  grid.mark();
  grid.all = data.rows;
  refilter();
  drawChips();
  return { changed: () => { columns(); drawChips(); grid.setRows(data.rows); } };
}

function columnsOf(rows, sweep) {
  const metrics = new Set(), params = new Map();
  for (const row of rows) {
    for (const name in row.metrics) metrics.add(name);
    for (const name in row.params) {
      const one = params.get(name) ?? { values: new Set(), count: 0 };
      if (one.values.size < 2) one.values.add(text(row.params[name]));
      one.count++;
      params.set(name, one);
    }
  }
  const ordered = [...metrics].sort((a, b) => (b === sweep.metric) - (a === sweep.metric) || a.localeCompare(b));
  const varying = [...params].filter(([, one]) => one.values.size > 1 || one.count < rows.length || rows.length === 1).map(([name]) => name);
  const wide = (title, rem) => `minmax(${rem}rem, ${Math.max(rem, Math.min(18, title.length * 0.55 + 2))}rem)`;
  const longest = rows.reduce((most, row) => Math.max(most, row.name.length), 0);
  return [
    { key: "name", title: "Run", width: `minmax(${Math.max(10, Math.min(26, longest * 0.52 + 2))}rem, 2fr)`, value: (r) => r.index, text: (r) => r.name, fill: link },
    { key: "state", title: "State", width: "minmax(8.5rem, 9rem)", value: (r) => r.state, text: (r) => r.state, fill: stateCell },
    { key: "step", title: "Step", width: "5.5rem", num: true, value: (r) => r.step, text: (r) => number(r.step) },
    ...ordered.slice(0, 12).map((name) => ({ key: `metric.${name}`, title: name, width: wide(name, 6.5), num: true, value: (r) => r.metrics[name], text: (r) => number(r.metrics[name]) })),
    ...varying.slice(0, 40).map((name) => ({ key: `param.${name}`, title: name, width: wide(name, 6), num: numeric(rows, name), value: (r) => r.params[name], text: (r) => text(r.params[name]) })),
    { key: "seconds", title: "Time", width: "7rem", num: true, value: seconds, text: (r) => duration(seconds(r)) },
    ...(rows.some((r) => typeof r.cost === "number") ? [{ key: "cost", title: "Cost", width: "6rem", num: true, value: (r) => r.cost, text: (r) => number(r.cost) }] : []),
    { key: "attempt", title: "Tries", width: "4.5rem", num: true, value: (r) => r.attempt, text: (r) => (r.attempt ? String(r.attempt) : "") },
    { key: "host", title: "Host", width: "8rem", value: (r) => r.host, text: (r) => r.host ?? "" },
    { key: "tags", title: "Tags", width: "8rem", value: (r) => (r.tags ?? []).join(" "), text: (r) => (r.tags ?? []).join(" ") },
  ];
}

const numeric = (rows, name) => rows.slice(0, 50).some((r) => typeof r.params[name] === "number");

function link(cell, row) {
  if (cell.dataset.id === row.id) return;
  cell.dataset.id = row.id;
  const made = runLink(row);
  made.tabIndex = -1;
  show(cell, made);
}

function stateCell(cell, row) {
  const words = row.state + (row.state === "running" && row.stop ? ", stopping" : row.lost ? ", its script died" : row.stale ? ", silent" : "");
  if (cell.textContent === words) return;
  cell.textContent = words;
  cell.className = `cell state s-${row.state}`;
  cell.title = row.failure ?? words;
}

const curvesView = async (context) => (await import("./curves.js")).curvesView(context);
const compareView = async (context) => (await import("./compare.js")).compareView(context);

const errorsView = ({ name, place }) => errorList(place, { sweep: name });
