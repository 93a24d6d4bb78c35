// Pieces that several views share.

import { ask, h, show, toast } from "./dom.js";
import { get, post } from "./data.js";
import { STATES, count } from "./words.js";

export function state(row) {
  const asked = row.state === "running" && row.stop ? ", asked to stop" : row.lost ? ", its script died" : row.stale ? ", silent" : "";
  return h("span", { class: `state s-${row.state}` }, row.state + asked);
}

export function progress(counts, runs) {
  const bar = h("div", { class: "progress", role: "img", "aria-label": counted(counts) });
  for (const name of ["done", "pruned", "stopped", "failed", "diverged", "unreadable", "lost", "running", "paused"]) {
    if (!counts[name]) continue;
    const part = h("span", { class: `s-${name}` });
    part.style.flexGrow = counts[name];
    bar.append(part);
  }
  const rest = h("span", { class: "s-rest" });
  rest.style.background = "transparent";
  rest.style.minWidth = "0";
  rest.style.flexGrow = Math.max(0, runs - Object.entries(counts).reduce((sum, [name, n]) => sum + (name === "queued" ? 0 : n), 0));
  bar.append(rest);
  return bar;
}

export function counted(counts) {
  return STATES.filter((name) => counts[name]).map((name) => `${counts[name]} ${name}`).join(", ") || "no runs";
}

export function runLink(row) {
  return h("a", { href: `#/run/${encodeURIComponent(row.id)}` }, row.name);
}

export const canStop = (row) => ["queued", "running", "paused"].includes(row.state) && !row.stop;
export const canRetry = (row) => ["failed", "diverged", "stopped", "paused"].includes(row.state) || (row.state === "running" && row.stale);

export async function act(what, rows) {
  const ids = rows.filter(what === "stop" ? canStop : canRetry).map((row) => row.id);
  if (!ids.length) { toast(`None of these runs can be ${what === "stop" ? "stopped" : "tried again"}.`); return; }
  const text = what === "stop" ? "Running ones save and then end; hostler resume continues them."
    : "Failed runs are queued again with their code; stopped and paused ones continue.";
  if (!(await ask(`${what === "stop" ? "Stop" : "Try again"}: ${count(ids.length, "run")}?`, text, what === "stop" ? "Stop" : "Try again"))) return;
  try {
    const { results } = await post(what, { runs: ids });
    const said = new Map();
    for (const one of results) said.set(one.said, [...(said.get(one.said) ?? []), one.name]);
    for (const [words, names] of said) toast(`${names.length > 3 ? count(names.length, "run") : names.join(", ")}: ${words}`);
    const note = results.find((one) => one.note)?.note;
    if (note) toast(note);
  } catch (error) { toast(error.message); }
}

// The errors that stand, drawn again when others come; what is open stays open.
export async function errorList(place, query) {
  let shown = null;
  const draw = async () => {
    try {
      const groups = await get("errors", query), key = JSON.stringify(groups);
      if (key === shown) return;
      const open = new Map([...place.querySelectorAll("details")].map((one) => [one.dataset.key, one.open]));
      shown = key;
      show(place, errorGroups(groups));
      for (const one of place.querySelectorAll("details")) if (open.has(one.dataset.key)) one.open = open.get(one.dataset.key);
    } catch (error) { shown = null; show(place, h("p", { class: "s-failed" }, error.message)); }
  };
  await draw();
  return { changed: (ids) => { if (ids.size) draw(); } };
}

function errorGroups(groups) {
  if (!groups.length) return h("div", { class: "empty" }, "No current errors.");
  return h("div", { class: "card" }, groups.map((group, n) => h("details", { class: "error", open: n === 0, "data-key": `${group.kind} ${group.message}` },
    h("summary", {}, h("strong", { class: "s-failed" }, `${group.count > 1 ? `${group.count} × ` : ""}${group.kind}`), " ", group.message),
    h("p", { class: "muted" }, `${count(group.runs.length, "run")}: ${group.runs.slice(0, 12).join(", ")}${group.runs.length > 12 ? " …" : ""}`,
      Object.keys(group.hosts).length ? ` · on ${Object.keys(group.hosts).slice(0, 6).join(", ")}` : ""),
    group.traceback ? h("pre", { tabindex: 0, "aria-label": "Traceback" }, group.traceback) : null,
    group.advice ? h("p", {}, `→ ${group.advice}`) : null)));
}
