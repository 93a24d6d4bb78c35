// The selected runs side by side: what differs first, the best of each metric marked, their curves, code and packages.

import { curvesView } from "./curves.js";
import { get } from "./data.js";
import { h, show } from "./dom.js";
import { compare as order } from "./filter.js";
import { figure, runLink, state, widest } from "./parts.js";
import { count, isOdd, text } from "./words.js";

const MOST = 50;

export async function compareView(context) {
  const { kept, place, data } = context;
  const up = context.sweep().goal === "min";
  const rows = data.rows.filter((row) => kept.selected.has(row.id)).sort((a, b) => order(a.value, b.value, !up)).slice(0, MOST); // the best first
  if (rows.length < 2) {
    show(place, h("div", { class: "empty card" }, "Select two or more runs in the table to see what differs between them."));
    return {};
  }
  const found = await get("compare", { id: rows.map((row) => row.id) });
  const curves = h("div", { class: "place curves" });
  const more = kept.selected.size > rows.length ? `The first ${MOST} of ${count(kept.selected.size, "run")}.` : count(rows.length, "run");
  const equal = Object.keys(found.same).length;
  show(place,
    h("p", { class: "muted" }, `${more} ${equal ? `· ${count(equal, "parameter")} equal in all of them` : "· every parameter differs"}`),
    h("div", { class: "card scroll", tabindex: 0, role: "region", "aria-label": "Comparison" }, h("table", { class: "plain compare" },
      h("thead", {}, h("tr", {}, h("td", {}), found.runs.map((run) => h("th", { scope: "col" }, runLink(run), h("div", {}, state(run)))))),
      section("Parameters that differ", found.params, found.runs.length, {}),
      section("Metrics", found.metrics, found.runs.length, found.goals),
      section("Run", found.facts, found.runs.length, {}))),
    equal ? h("details", { class: "fold" }, h("summary", {}, `${count(equal, "equal parameter")}`),
      h("dl", { class: "facts" }, Object.entries(found.same).map(([name, value]) => [h("dt", {}, name), h("dd", {}, text(value) || "–")]))) : null,
    h("h2", {}, "Curves"), curves, h("h2", {}, "Packages"), packages(found), h("h2", {}, "Code"), code(found));
  const view = await curvesView({ ...context, place: curves });
  return { changed: (ids) => view?.changed?.(ids) };
}

// The places of the best values of a line, by its goal; none where all are the same.
function best(values, goal) {
  const known = values.filter((value) => typeof value === "number");
  const top = goal === "min" ? Math.min(...known) : Math.max(...known);
  return goal && known.some((value) => value !== top) ? new Set(values.flatMap((value, n) => (value === top ? [n] : []))) : new Set();
}

function section(title, lines, width, goals) {
  const names = Object.keys(lines).sort((a, b) => (b in goals) - (a in goals));
  if (!names.length) return null;
  return h("tbody", {}, h("tr", { class: "part" }, h("th", { scope: "colgroup", colspan: width + 1 }, title)),
    names.map((name) => {
      const values = lines[name], top = best(values, goals[name]), wide = widest(values);
      return h("tr", {}, h("th", { scope: "row" }, name, goals[name] ? h("span", { class: "muted" }, goals[name] === "min" ? " ↓" : " ↑") : null),
        values.map((value, n) => h("td", { class: `value${top.has(n) ? " top" : ""}${isOdd(value) ? " odd" : ""}` },
          value === null || value === "" ? "–" : figure(value, wide), top.has(n) ? h("span", { class: "sr" }, " best") : null)));
    }));
}

function packages(found) {
  const names = Object.keys(found.packages);
  if (!names.length) return h("p", { class: "muted" }, "The same versions, as far as the runs have noted them.");
  return h("div", { class: "card scroll", tabindex: 0, role: "region", "aria-label": "Packages" }, h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, h("td", {}), found.runs.map((run) => h("th", { scope: "col" }, run.name)))),
    h("tbody", {}, names.map((name) => h("tr", {}, h("th", { scope: "row" }, name), found.packages[name].map((value) => h("td", { class: "value" }, value ?? "–")))))));
}

// The code of two of the runs, file by file: those that a person chooses, at first two that differ.
function code(found) {
  if (new Set(found.codes).size < 2) return h("p", { class: "muted" }, "The same code.");
  const other = Math.max(1, found.codes.findIndex((mark) => mark !== found.codes[0]));
  const choose = (label, n) => h("select", { "aria-label": label }, found.runs.map((run, i) => h("option", { value: run.id, selected: i === n }, run.name)));
  const [from, to, place] = [choose("From", 0), choose("To", other), h("div", {})];
  const draw = async () => {
    try {
      const { files, kept } = await get("code", { id: [from.value, to.value] });
      show(place, files.length ? files.map(changed) : h("p", { class: "muted" }, kept ? "The same files." : "The code of these runs is not in the store."));
    } catch (error) { show(place, h("p", { class: "s-failed" }, error.message)); }
  };
  for (const one of [from, to]) one.addEventListener("change", draw);
  draw();
  return h("div", {}, h("div", { class: "bar" }, h("label", { class: "field" }, "From", from), h("label", { class: "field" }, "to", to)), place);
}

function changed(file) {
  const kinds = { "+": "added", "-": "removed", "@": "where" };
  return h("details", { class: "fold", open: true }, h("summary", {}, h("code", {}, file.name), h("span", { class: "muted" }, ` ${file.how}`)),
    file.text.length ? h("pre", { class: "diff", tabindex: 0, role: "region", "aria-label": `Changes of ${file.name}` },
      file.text.slice(2).map((line) => h("span", { class: kinds[line[0]] ?? "same" }, `${line}\n`))) : h("p", { class: "muted" }, "not a text"));
}
