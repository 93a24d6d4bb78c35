// The selected runs side by side: only what differs between them.

import { get } from "./data.js";
import { h, show } from "./dom.js";
import { text } from "./words.js";

export async function compareView({ kept, place, data }) {
  const ids = data.rows.filter((row) => kept.selected.has(row.id)).map((row) => row.id).slice(0, 50);
  if (ids.length < 2) {
    show(place, h("div", { class: "empty card" }, "Select two or more runs in the table to see what differs between them."));
    return {};
  }
  const found = await get("compare", { id: ids });
  show(place, h("p", { class: "muted" }, found.same > 0 ? `${found.same} parameters are equal in all of these runs and are not shown.` : "Every parameter differs."),
    h("div", { class: "card scroll", tabindex: 0, role: "region", "aria-label": "Comparison" }, h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Name"), found.runs.map((run) =>
        h("th", { scope: "col" }, h("a", { href: `#/run/${encodeURIComponent(run.id)}` }, run.name))))),
      section("Parameters", found.params, found.runs.length), section("Metrics", found.metrics, found.runs.length),
      section("Facts", found.facts, found.runs.length))));
  return {};
}

function section(title, lines, width) {
  const names = Object.keys(lines);
  if (!names.length) return null;
  return h("tbody", {}, h("tr", {}, h("th", { scope: "colgroup", colspan: width + 1 }, title)),
    names.map((name) => h("tr", {}, h("th", { scope: "row" }, name),
      lines[name].map((value) => h("td", { class: "value" }, value === null ? "–" : text(value))))));
}
