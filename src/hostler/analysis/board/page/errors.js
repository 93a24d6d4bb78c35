// Errors that stand, the same ones together: how many runs, since when, the traceback, and another try.

import { get, known } from "./data.js";
import { h, show } from "./dom.js";
import { act, when } from "./parts.js";
import { ago, count } from "./words.js";

const NAMED = 24; // runs of a group that have a link each

// Drawn again when others come; what is open stays open.
export async function errorList(place, query) {
  let shown = null;
  const draw = async () => {
    try {
      const groups = await get("errors", query), key = JSON.stringify(groups);
      if (key === shown) return;
      const open = new Map([...place.querySelectorAll("details.error")].map((one) => [one.dataset.key, one.open]));
      shown = key;
      show(place, errorGroups(groups));
      for (const one of place.querySelectorAll("details.error")) if (open.has(one.dataset.key)) one.open = open.get(one.dataset.key);
    } catch (error) { shown = null; show(place, h("p", { class: "s-failed" }, error.message)); }
  };
  await draw();
  return { changed: (ids) => { if (ids.size) draw(); } };
}

export function errorsView(ground) {
  document.title = "Errors · hostler";
  const place = h("div", {});
  show(ground, h("div", { class: "head" }, h("h1", {}, "Errors")), place);
  return errorList(place, {});
}

function errorGroups(groups) {
  if (!groups.length) return h("div", { class: "empty card" }, "No current errors.");
  return h("div", { class: "card" }, [...groups].sort((a, b) => b.ids.length - a.ids.length).map(errorGroup));
}

function errorGroup(group, n) {
  const runs = group.runs.map((name, i) => ({ name, id: group.ids[i] }));
  const hosts = Object.keys(group.hosts);
  const retry = h("button", {
    type: "button", disabled: !group.retry || !known.overview.writable, onclick: () => act("retry", runs.map((run) => ({ ...run, state: "failed" }))),
  }, `Retry ${count(runs.length, "run")}`);
  return h("details", { class: "error", open: n === 0, "data-key": `${group.kind} ${group.message}` },
    h("summary", {}, h("strong", { class: "s-failed" }, group.kind), h("span", { class: "message" }, group.message),
      h("span", { class: "muted tally" }, count(runs.length, "run"), group.last ? [" · ", when(group.last)] : null)),
    h("div", { class: "bar" },
      h("span", { class: "muted" }, group.first && ago(group.first) !== ago(group.last) ? ["first ", when(group.first), ", last ", when(group.last)] : group.last ? ["seen ", when(group.last)] : null,
        hosts.length ? ` · on ${hosts.slice(0, 6).join(", ")}${hosts.length > 6 ? ` and ${hosts.length - 6} more` : ""}` : "",
        group.count > runs.length ? ` · ${count(group.count, "attempt")}` : ""),
      h("span", { class: "spacer" }), retry),
    h("p", { class: "names" }, runs.slice(0, NAMED).map((run) => h("a", { href: `#/run/${encodeURIComponent(run.id)}` }, run.name)),
      runs.length > NAMED ? h("span", { class: "muted" }, `and ${runs.length - NAMED} more`) : null),
    group.traceback ? h("pre", { tabindex: 0, role: "region", "aria-label": "Traceback" }, group.traceback) : null,
    group.advice ? h("p", { class: "advice" }, `→ ${group.advice}`) : null);
}
