// Pieces that several views share.

import { ask, h, toast } from "./dom.js";
import { post } from "./data.js";
import { STATES, ago, count, fraction, full, isOdd, moment, number, stateOf, stateWords, text, thousands } from "./words.js";

export function state(row) {
  const { words, tone } = stateOf(row);
  return h("span", { class: `state s-${tone}`, title: row.failure && typeof row.failure === "string" ? row.failure : null }, words);
}

// A time as people say it; the date and the hour for who points at it.
export function when(seconds) {
  return seconds ? h("time", { datetime: new Date(seconds * 1000).toISOString(), title: moment(seconds) }, ago(seconds)) : null;
}

// Which value the best run is ranked by: " best, step 40".
export function which(best) {
  return best.of ? ` ${best.of}${typeof best.step === "number" ? `, step ${best.step}` : ""}` : "";
}

// A number in a cell of a table, aligned at the decimal point with those under it; the whole of it on hover.
export function figure(value, width) {
  if (isOdd(value)) return h("span", { class: "odd", title: "not a finite number" }, value);
  const shown = text(value), end = fraction(shown), whole = full(value);
  if (typeof value !== "number") return h("span", { title: whole }, shown);
  const tail = h("span", { class: "frac" }, end);
  tail.style.width = `${width}ch`;
  return h("span", { class: "figure", title: whole === shown ? null : whole }, shown.slice(0, shown.length - end.length), tail);
}

export function widest(values) {
  return values.reduce((most, value) => Math.max(most, typeof value === "number" ? fraction(number(value)).length : 0), 0);
}

export function progress(counts, runs) {
  const bar = h("div", { class: "progress", role: "img", "aria-label": counted(counts) });
  for (const name of ["done", "pruned", "stopped", "failed", "diverged", "unreadable", "lost", "running", "paused", "parked"]) {
    if (!counts[name]) continue;
    const part = h("span", { class: `s-${name}` });
    part.style.flexGrow = counts[name];
    bar.append(part);
  }
  const rest = h("span", { class: "s-rest" });
  rest.style.flexGrow = Math.max(0, runs - Object.entries(counts).reduce((sum, [name, n]) => sum + (name === "queued" ? 0 : n), 0));
  bar.append(rest);
  return bar;
}

export function counted(counts) {
  return STATES.filter((name) => counts[name]).map((name) => `${thousands(counts[name])} ${stateWords(name)}`).join(", ") || "no runs";
}

// A line without axes: how a value went. `label` says it in words.
export function spark(values, label, { width = 96, height = 24 } = {}) {
  const known = values.map(Number).filter(Number.isFinite);
  if (known.length < 2) return null;
  const low = Math.min(...known), span = Math.max(...known) - low || 1;
  const at = (value, n) => `${((n / (known.length - 1)) * (width - 4) + 2).toFixed(1)},${(height - 3 - ((value - low) / span) * (height - 6)).toFixed(1)}`;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label })) svg.setAttribute(name, value);
  const line = document.createElementNS(svg.namespaceURI, "polyline");
  line.setAttribute("points", known.map(at).join(" "));
  const end = document.createElementNS(svg.namespaceURI, "circle");
  const [x, y] = at(known.at(-1), known.length - 1).split(",");
  for (const [name, value] of Object.entries({ cx: x, cy: y, r: 2 })) end.setAttribute(name, value);
  svg.append(line, end);
  return svg;
}

// How much of something is used: a bar with its words. `ends`: full is trouble, as of memory; full slots and GPUs are well used.
export function meter(title, part, whole, words, { ends = false } = {}) {
  const share = whole > 0 ? Math.max(0, Math.min(1, part / whole)) : 0;
  const fill = h("span", {});
  fill.style.width = `${(share * 100).toFixed(1)}%`;
  return h("div", { class: `meter${ends && share > 0.92 ? " high" : ""}`, role: "img", "aria-label": `${title}: ${words}` },
    h("span", { class: "name" }, title), h("span", { class: "bar-of" }, fill), h("span", { class: "words" }, words));
}

export const runPlace = (row) => `#/run/${encodeURIComponent(row.id)}`;

export function runLink(row) {
  return h("a", { href: runPlace(row) }, row.name);
}

// A text to take along, with the button that does it.
export function copyable(words, label) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy ${label}` }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(words);
      button.textContent = "Copied";
    } catch { // not allowed here: it is selected, so that a key does it
      getSelection().selectAllChildren(button.previousSibling);
      button.textContent = "Press Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return h("div", { class: "copyable" }, h("code", { tabindex: 0 }, words), button);
}

export const canStop = (row) => ["queued", "running", "paused"].includes(row.state) && !row.stop;
export const canRetry = (row) => ["failed", "diverged", "stopped", "paused"].includes(row.state) || (row.state === "running" && row.stale);

export async function act(what, rows) {
  const ids = rows.filter(what === "stop" ? canStop : canRetry).map((row) => row.id);
  if (!ids.length) { toast(`None of these runs can be ${what === "stop" ? "stopped" : "tried again"}.`); return; }
  const words = what === "stop" ? "Running ones save and then end; hostler resume continues them."
    : "Failed runs are queued again with their code; stopped and paused ones continue.";
  if (!(await ask(`${what === "stop" ? "Stop" : "Try again"}: ${count(ids.length, "run")}?`, words, what === "stop" ? "Stop" : "Try again"))) return;
  await send(what, { runs: ids });
}

// Asks for tags: `good -old` gives one and takes the other away.
export async function tag(rows) {
  const box = h("input", { type: "text", "aria-label": "Tags", placeholder: "good -old", autocomplete: "off", spellcheck: "false" });
  const words = h("span", {}, "Words are added, a word after a - is taken away.", box);
  if (!(await ask(`Tag: ${count(rows.length, "run")}`, words, "Tag"))) return;
  const given = box.value.split(/[\s,]+/).filter(Boolean);
  const add = given.filter((word) => !word.startsWith("-")).map((word) => word.replace(/^\+/, "")), remove = given.filter((word) => word.startsWith("-")).map((word) => word.slice(1));
  if (given.length) await send("tag", { runs: rows.map((row) => row.id), add, remove });
}

async function send(what, body) {
  try {
    const { results } = await post(what, body);
    const said = new Map();
    for (const one of results) said.set(one.said, [...(said.get(one.said) ?? []), one.name]);
    for (const [words, names] of said) toast(`${names.length > 3 ? count(names.length, "run") : names.join(", ")}: ${words}`);
    const note = results.find((one) => one.note)?.note;
    if (note) toast(note);
  } catch (error) { toast(error.message); }
}
