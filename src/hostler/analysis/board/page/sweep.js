// One sweep: its runs, curves, comparison and errors.

import { known, table } from "./data.js";
import { h, show } from "./dom.js";
import { progress, which } from "./parts.js";
import { runsView } from "./runs.js";
import { duration, full, kindOf, number } from "./words.js";

const TABS = [["runs", "Runs"], ["curves", "Curves"], ["search", "Search"], ["compare", "Compare"], ["errors", "Errors"]];
const memory = new Map(); // sweep → what is filtered and selected, kept while one looks elsewhere

export async function sweepView(main, name, asked) {
  const tab = TABS.some(([key]) => key === asked) ? asked : "runs";
  document.title = `${name} · hostler`;
  const kept = memory.get(name) ?? { filter: "", test: () => true, states: new Set(), selected: new Set(), sort: undefined };
  memory.set(name, kept);
  const data = await table(name);
  const head = h("div", { class: "head" });
  const place = h("div", { class: "place" });
  const link = ([key, title]) => h("a", { href: `#/sweep/${encodeURIComponent(name)}/${key}`, "aria-current": key === tab ? "page" : null }, title);
  show(main, head, h("nav", { class: "tabs", "aria-label": "Of this sweep" }, TABS.map(link)), place);
  const drawHead = () => {
    const one = known.overview.sweeps.find((s) => s.name === name);
    if (!one) {
      if (!known.overview.reading) show(head, h("h1", {}, name), h("span", { class: "s-failed" }, "is no longer in the store"));
      return;
    }
    show(head, h("h1", {}, one.title || name), progress(one.counts, one.runs),
      one.best ? h("span", { class: "best" }, h("span", { class: "muted" }, `best ${one.metric} `), h("a", { href: `#/run/${encodeURIComponent(one.best.id)}`, title: full(one.best.value) }, number(one.best.value)), h("span", { class: "muted" }, which(one.best))) : null,
      one.eta ? h("span", { class: "muted" }, `${duration(one.eta)} left`) : null,
      one.halted ? h("span", { class: "s-failed" }, `halted: ${one.halted}`) : null,
      one.trouble ? h("span", { class: "s-failed" }, one.trouble) : null);
  };
  drawHead();
  const context = { name, data, kept, place, sweep: () => known.overview.sweeps.find((s) => s.name === name) ?? {} };
  const view = await { runs: runsView, curves: curvesView, search: searchView, compare: compareView, errors: errorsView }[tab](context);
  return { changed: (ids) => { drawHead(); view?.changed?.(ids); } };
}

// The runs that the filter and the state buttons let through.
export function shown({ data, kept }) {
  return data.rows.filter((row) => !row.trashed && (!kept.states.size || kept.states.has(kindOf(row))) && kept.test(row));
}

const curvesView = async (context) => (await import("./curves.js")).curvesView(context);
const searchView = async (context) => (await import("./search.js")).searchView(context);
const compareView = async (context) => (await import("./compare.js")).compareView(context);
const errorsView = async ({ name, place }) => (await import("./errors.js")).errorList(place, { sweep: name });
