// One run: how it is, what it was given, what came out, what it left, what it printed.

import { curvesView } from "./curves.js";
import { get, known } from "./data.js";
import { h, show } from "./dom.js";
import { filesView } from "./files.js";
import { logView } from "./log.js";
import { act, canRetry, canStop, copyable, figure, spark, state, tag, when, widest } from "./parts.js";
import { bytes, duration, full, isOdd, money, moment, number, seconds, text } from "./words.js";

export async function runView(main, id) {
  let run = await get("run", { id });
  document.title = `${run.name} · hostler`;
  const [head, summary, failure, params, metrics, system, tries, rest] = Array.from({ length: 8 }, () => h("div", {}));
  const curves = h("div", { class: "place curves" }), files = filesView(run);
  const part = (title, ...made) => h("section", {}, h("h2", {}, title), made);
  show(main, head, summary, failure,
    h("div", { class: "two" }, h("div", {}, part("Parameters", params), part("Metrics", metrics), part("Attempts", tries)), h("div", {}, part("Curves", curves), part("System", system))),
    files ? part("Files", files) : null, part("Log", logView(run)), part("Command", rest));
  const draw = () => {
    show(head, headOf(run));
    show(summary, summaryOf(run));
    show(failure, run.failure && typeof run.failure === "object" ? trouble(run) : null);
    show(params, given(run));
    show(metrics, totals(run));
    show(tries, timeline(run));
    show(rest, copyable(run.command.join(" "), "command"), copyable(`hostler show ${run.copy_of || run.name}`, "hostler show"), about(run));
    drawSystem(system, run);
  };
  draw();
  const view = await curvesView({ ...alone(run), place: curves });
  return { changed: async (ids) => {
    if (!ids.has(id)) return;
    run = await get("run", { id });
    draw();
    view?.changed?.(ids);
  } };
}

// The run as a table of its own, for the curves.
function alone(run) {
  const row = { ...run, metrics: Object.fromEntries(Object.entries(run.totals).filter(([name]) => !name.startsWith("system/")).map(([name, t]) => [name, t.last])) };
  const kept = { filter: "", test: () => true, states: new Set(), selected: new Set([run.id]), single: true };
  return { name: run.sweep, data: { rows: [row], byId: new Map([[run.id, row]]), whole: true }, kept, sweep: () => known.overview.sweeps.find((s) => s.name === run.sweep) ?? {} };
}

function headOf(run) {
  const writable = known.overview.writable;
  return h("div", { class: "head" }, h("div", {}, h("p", { class: "muted crumb" }, h("a", { href: `#/sweep/${encodeURIComponent(run.sweep)}` }, run.sweep)), h("h1", {}, run.name)),
    state(run), (run.tags ?? []).map((word) => h("span", { class: "tag" }, word)), h("span", { class: "spacer" }),
    h("button", { type: "button", disabled: !writable, onclick: () => tag([run]) }, "Tag"),
    h("button", { type: "button", disabled: !canRetry(run) || !writable, onclick: () => act("retry", [run]) }, "Retry"),
    h("button", { type: "button", class: "danger", disabled: !canStop(run) || !writable, onclick: () => act("stop", [run]) }, "Stop"));
}

function summaryOf(run) {
  const value = run.value ?? run.metrics[run.metric];
  const tile = (name, made, hover) => (made === "" || made === null || made === undefined ? null : h("div", { class: "tile", title: hover ?? null }, h("span", { class: "muted" }, name), h("strong", {}, made)));
  return h("div", { class: "tiles" },
    run.metric ? tile(run.metric + (run.ranked ? ` (${run.ranked})` : ""), isOdd(value) ? h("span", { class: "odd" }, value) : number(value), full(value)) : null,
    tile("step", number(run.step)), tile("time", duration(seconds(run)), `${seconds(run)} s`), tile("started", when(run.started)),
    tile("host", run.host), tile("cost", money(run.cost)), run.attempt > 1 ? tile("attempts", String(run.attempt)) : null);
}

function lines(rows) {
  return rows.length ? h("div", { class: "card scroll", tabindex: 0, role: "region", "aria-label": "Values" }, h("table", { class: "plain" }, h("tbody", {}, rows))) : h("p", { class: "muted" }, "none");
}

function given(run) {
  const entries = Object.entries(run.params), wide = widest(entries.map(([, value]) => value));
  return lines(entries.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "value" }, figure(value, wide)))));
}

function totals(run) {
  const own = Object.entries(run.totals).filter(([name]) => !name.startsWith("system/")).sort(([a], [b]) => (b === run.metric) - (a === run.metric) || a.localeCompare(b));
  if (!own.length) return h("p", { class: "muted" }, "Nothing has been logged yet.");
  const parts = ["last", "min", "max"], wide = parts.map((part) => widest(own.map(([, total]) => total[part])));
  return h("div", { class: "card scroll", tabindex: 0, role: "region", "aria-label": "Metrics" }, h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, h("td", {}), [...parts, "step"].map((title) => h("th", { scope: "col", class: "num" }, title)))),
    h("tbody", {}, own.map(([name, total]) => h("tr", {}, h("th", { scope: "row" }, name), parts.map((part, n) => h("td", { class: "num" }, figure(total[part], wide[n]))), h("td", { class: "num" }, number(total.step)))))));
}

const SYSTEM = { "system/cpu": ["CPU", number], "system/memory": ["memory", bytes], "system/gpu": ["GPU", (v) => `${Math.round(v)} %`], "system/gpu_memory": ["GPU memory", bytes], "system/processes": ["processes", number] };

// What it used: a line each, and the most of it.
async function drawSystem(place, run) {
  const names = Object.keys(SYSTEM).filter((name) => run.totals[name]);
  if (!names.length) { show(place, h("p", { class: "muted" }, "Nothing has been measured.")); return; }
  const found = await Promise.all(names.map((name) => get("curves", { id: run.id, metric: name, most: 120 }).catch(() => ({ curves: {} }))));
  show(place, h("div", { class: "card scroll", tabindex: 0, role: "region", "aria-label": "System" }, h("table", { class: "plain system" }, h("tbody", {}, names.map((name, n) => {
    const [title, words] = SYSTEM[name], { last, max } = run.totals[name], curve = found[n].curves[run.id]?.y ?? [];
    return h("tr", {}, h("th", { scope: "row" }, title), h("td", {}, spark(curve, `${title} over time`, { width: 150 })), h("td", { class: "num" }, words(last)), h("td", { class: "num muted" }, `at most ${words(max)}`));
  })))));
}

// Attempts as bars along the time that the run has taken, each with its words.
function timeline(run) {
  if (!run.attempts.length) return h("p", { class: "muted" }, "Nobody has taken it yet.");
  const now = Date.now() / 1000, ends = run.attempts.map((one) => one.ended ?? (one.seconds ? one.started + one.seconds : now));
  const from = Math.min(...run.attempts.map((one) => one.started)), span = Math.max(1e-3, Math.max(...ends) - from);
  return h("div", { class: "card timeline" }, h("ol", {}, run.attempts.map((one, n) => {
    const bar = h("span", { class: `span s-${tone(one.outcome)}` });
    bar.style.left = `${(((one.started - from) / span) * 100).toFixed(2)}%`;
    bar.style.width = `${(((ends[n] - one.started) / span) * 100).toFixed(2)}%`;
    return h("li", {}, h("span", { class: "n" }, String(one.ordinal)), h("span", { class: "track", "aria-hidden": "true" }, bar),
      h("span", { class: "words" }, h("span", { class: `s-${tone(one.outcome)}` }, one.words), h("span", { class: "muted" }, ` · ${duration(one.seconds ?? ends[n] - one.started)}${one.host ? ` on ${one.host}` : ""}${one.step ? `, to step ${number(one.step)}` : ""} · `, when(one.started))));
  })), run.events.length ? h("p", { class: "muted" }, run.events.map((one) => [`${one.what}${one.by ? ` by ${one.by}` : ""} `, when(one.at), " "])) : null);
}

const tone = (outcome) => (["done", "running", "failed", "diverged", "pruned", "stopped", "paused", "lost"].includes(outcome) ? outcome : "queued");

function about(run) {
  const ran = run.environment;
  const line = (name, value) => (value ? [h("dt", {}, name), h("dd", {}, value)] : null);
  return h("dl", { class: "facts" }, line("id", run.id), line("started", moment(run.started)), line("code", run.source), line("Python", ran.python), line("platform", ran.platform), line("GPUs", ran.gpus), line("hostler", ran.hostler),
    line("notes", run.notes), run.result && Object.keys(run.result).length ? line("result", text(run.result)) : null,
    run.tracked.filter((one) => one.url).map((one) => line(one.tool, one.url)));
}

function trouble(run) {
  return h("div", { class: "card" }, h("details", { class: "error", open: true },
    h("summary", {}, h("strong", { class: "s-failed" }, run.failure.kind ?? "failed"), h("span", { class: "message" }, run.failure.message ?? "")),
    run.failure.traceback ? h("pre", { tabindex: 0, role: "region", "aria-label": "Traceback" }, run.failure.traceback) : null));
}
