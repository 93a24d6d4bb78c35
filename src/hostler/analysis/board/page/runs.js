// The runs of a sweep: a table that filters and sorts at once, and what can be done with those that are selected.

import { known } from "./data.js";
import { h, show } from "./dom.js";
import { Choice, chooser, columnsOf } from "./columns.js";
import { filterBox } from "./filterbox.js";
import { Grid } from "./grid.js";
import { act, canRetry, canStop, tag } from "./parts.js";
import { STATES, count, kindOf, rungOf, stateWords, thousands } from "./words.js";

export function runsView({ name, data, kept, place, sweep }) {
  const total = h("span", { class: "muted total", role: "status" });
  const chosen = () => data.rows.filter((row) => kept.selected.has(row.id));
  const compare = () => { location.hash = `#/sweep/${encodeURIComponent(name)}/compare`; };
  const none = h("p", { class: "muted none", hidden: true });
  const choice = new Choice(name);
  let all = [], names = new Set(), shape = "";

  const grid = new Grid({
    label: `Runs of ${name}`, columns: [], selected: kept.selected,
    open: (row) => { location.hash = `#/run/${encodeURIComponent(row.id)}`; },
    changed: () => say(), resized: (column) => choice.set("widths", column.key, column.width),
  });
  const bar = selectionBar({ chosen, compare, clear: () => { kept.selected.clear(); grid.apply(); } });
  const say = () => {
    const on = data.whole && !known.overview.reading ? "" : ", reading on";
    const there = grid.there;
    const more = sweep().waiting ? `, ${thousands(sweep().waiting)} more wait` : "";
    total.textContent = `${thousands(grid.rows.length)} of ${count(data.whole ? there : Math.max(there, data.total), "run")}${more}${on}`;
    none.hidden = grid.rows.length > 0 || !data.whole;
    none.textContent = there ? "No run is let through by the filter and the states above." : "No runs yet.";
    bar.draw(kept.selected.size ? chosen() : []);
    kept.sort = grid.sort;
  };
  const refilter = () => grid.setFilter((row) => (!kept.states.size || kept.states.has(kindOf(row))) && kept.test(row));
  const search = filterBox({
    value: kept.filter, about: () => ({ rows: data.rows, names }),
    filter: (text, test) => { kept.filter = text; if (test) { kept.test = test; refilter(); } },
  });
  const chips = stateChips(data, kept, refilter);
  const setColumns = (again) => {
    all = columnsOf(data.rows, sweep());
    names = new Set(all.filter((one) => one.key.includes(".")).map((one) => one.title));
    const found = choice.of(all), key = found.map((one) => `${one.key}${one.pinned}`).join("\u0000");
    if (key === shape && !again) return;
    shape = key;
    grid.setColumns(found);
  };
  const menu = chooser(choice, () => columnsOf(data.rows, sweep()), () => { setColumns(true); grid.apply(); });

  setColumns();
  grid.sort = kept.sort === undefined ? byMetric(sweep(), grid.columns) : kept.sort;
  grid.mark();
  grid.all = data.rows;
  if (kept.filter) search.read(); else refilter();
  chips.draw();
  // In the page once it is drawn: it is laid out once.
  show(place, h("div", { class: "bar tools" }, search.element, menu), h("div", { class: "bar under" }, chips.element, h("span", { class: "spacer" }), total), grid.element, none, bar.element);
  keys(grid, search.box, compare);
  const about = () => [data.rows.length, data.whole, sweep().metric, sweep().goal].join();
  let drawn = about();
  // Where no run has changed, as when the store is read to its end, the table stands as it is.
  const changed = (ids) => {
    if (!ids.size && drawn === about()) { say(); return; }
    drawn = about();
    setColumns();
    chips.draw();
    grid.setRows(data.rows);
  };
  return { changed };
}

// The best first: by the value that runs are ranked by.
function byMetric(sweep, columns) {
  const key = ["value", `metric.${sweep.metric}`].find((one) => columns.some((column) => column.key === one));
  return key ? { key, down: sweep.goal !== "min" } : null;
}

function stateChips(data, kept, changed) {
  const element = h("div", { class: "chips", role: "group", "aria-label": "States" });
  const draw = () => {
    const counts = {};
    for (const row of data.rows) if (!row.trashed) { const kind = kindOf(row); counts[kind] = (counts[kind] ?? 0) + 1; }
    for (const name of kept.states) counts[name] ??= 0;
    const key = STATES.filter((s) => s in counts).map((s) => `${s}${counts[s]}${kept.states.has(s)}`).join();
    if (element.dataset.key === key) return;
    element.dataset.key = key;
    const focused = element.contains(document.activeElement) ? document.activeElement.dataset.state : null;
    show(element, STATES.filter((s) => s in counts).map((s) => h("button", {
      type: "button", class: `s-${s}`, "data-state": s, "aria-pressed": String(kept.states.has(s)), title: s === "parked" ? rungs(data.rows) : null,
      onclick: () => { kept.states.has(s) ? kept.states.delete(s) : kept.states.add(s); draw(); changed(); },
    }, `${stateWords(s)} ${thousands(counts[s])}`)));
    if (focused) element.querySelector(`[data-state="${focused}"]`)?.focus();
  };
  return { element, draw };
}

// Where a pruner has set runs aside: "rung 3: 4 runs, rung 9: 3 runs".
function rungs(rows) {
  const found = new Map();
  for (const row of rows) if (!row.trashed && kindOf(row) === "parked") found.set(rungOf(row), (found.get(rungOf(row)) ?? 0) + 1);
  return [...found].sort(([a], [b]) => a - b).map(([step, n]) => `rung ${step}: ${count(n, "run")}`).join(", ");
}

// "3 selected · Compare · Tag · Stop · ×", there while something is selected.
function selectionBar({ chosen, compare, clear }) {
  const button = (title, onclick, more = {}) => h("button", { type: "button", class: "quiet", onclick, ...more }, title);
  const words = h("span", { role: "status" });
  const [look, label, again, stop] = [button("Compare", compare), button("Tag", () => tag(chosen())), button("Retry", () => act("retry", chosen())), button("Stop", () => act("stop", chosen()), { class: "quiet danger" })];
  const element = h("div", { class: "selection", role: "toolbar", "aria-label": "Selected runs", hidden: true }, words, look, label, again, stop, button("×", clear, { "aria-label": "Clear selection" }));
  const draw = (rows) => {
    element.hidden = !rows.length;
    words.textContent = `${thousands(rows.length)} selected`;
    look.disabled = rows.length < 2;
    label.disabled = !known.overview.writable;
    again.hidden = !rows.some(canRetry);
    stop.hidden = !rows.some(canStop);
    again.disabled = stop.disabled = !known.overview.writable;
  };
  return { element, draw };
}

// j and k move, x selects, c compares, / goes to the filter; wherever one is, but in a box that is typed into.
let listening = null;
function keys(grid, box, compare) {
  document.removeEventListener("keydown", listening);
  listening = (event) => {
    if (!grid.element.isConnected) { document.removeEventListener("keydown", listening); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog, [contenteditable]")) return;
    const act = { j: () => grid.move(document.activeElement === grid.element ? 1 : 0), k: () => grid.move(document.activeElement === grid.element ? -1 : 0), x: () => grid.toggle(), c: compare, "/": () => box.focus() }[event.key];
    if (!act) return;
    event.preventDefault();
    if ("jkx".includes(event.key)) {
      act();
      grid.element.focus({ preventScroll: true });
      grid.draw();
    } else act();
  };
  document.addEventListener("keydown", listening);
}
