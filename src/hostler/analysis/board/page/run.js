// One run: how it is, what it was given, what came out, what it printed.

import { Chart, colour } from "./chart.js";
import { get, known } from "./data.js";
import { h, show } from "./dom.js";
import { logView } from "./log.js";
import { act, canRetry, canStop, state } from "./parts.js";
import { bytes, duration, moment, number, seconds, text } from "./words.js";

export async function runView(main, id) {
  let run = await get("run", { id });
  document.title = `${run.name} · hostler`;
  const head = h("div", { class: "head" }), facts = h("div", {}), tries = h("div", {});
  const chart = new Chart({ label: `Curves of ${run.name}`, size: "low" });
  const metric = h("select", { "aria-label": "Metric" });
  const failure = h("div", {});
  show(main, head, failure,
    h("div", { class: "two" }, h("div", {}, h("h2", {}, "Parameters and metrics"), facts),
      h("div", {}, h("h2", {}, "Curve"), h("div", { class: "bar" }, h("label", { class: "field" }, "Metric", metric)), chart.element, tries)),
    h("h2", {}, "Log"), logView(run));
  const draw = () => {
    show(head, h("div", {}, h("p", { class: "muted" }, h("a", { href: `#/sweep/${encodeURIComponent(run.sweep)}` }, run.sweep)), h("h1", {}, run.name)),
      state(run), h("span", { class: "muted" }, [duration(seconds(run)), run.host, typeof run.cost === "number" ? `cost ${number(run.cost)}` : null, run.attempt > 1 ? `${run.attempt} attempts` : null].filter(Boolean).join(" · ")),
      h("span", { class: "spacer" }),
      h("button", { type: "button", disabled: !canRetry(run) || !known.overview.writable, onclick: () => act("retry", [run]) }, "Retry"),
      h("button", { type: "button", class: "danger", disabled: !canStop(run) || !known.overview.writable, onclick: () => act("stop", [run]) }, "Stop"));
    show(facts, values(run));
    show(tries, more(run));
    show(failure, run.failure && typeof run.failure === "object" ? trouble(run) : null);
    const names = Object.keys(run.totals).sort((a, b) => a.startsWith("system/") - b.startsWith("system/") || a.localeCompare(b));
    if (metric.dataset.key !== names.join()) {
      const now = metric.value || main.dataset.metric || known.overview.sweeps.find((s) => s.name === run.sweep)?.metric;
      metric.dataset.key = names.join();
      show(metric, names.map((name) => h("option", { value: name }, name)));
      if (names.includes(now)) metric.value = now;
    }
  };
  const curve = async () => {
    if (!metric.value) { chart.set([], {}); return; }
    const { curves } = await get("curves", { id, metric: metric.value, most: 1500 });
    const dark = document.documentElement.dataset.theme === "dark";
    chart.set(Object.values(curves).map((c) => ({ id, name: run.name, x: c.x, y: c.y.map(Number), colour: colour(0, dark) })), { y: metric.value });
  };
  metric.addEventListener("change", () => { chart.reset(); curve(); });
  draw();
  await curve();
  return { changed: async (ids) => {
    if (!ids.has(id)) return;
    run = await get("run", { id });
    draw();
    await curve();
  } };
}

function values(run) {
  const line = (name, value, extra = "") => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "value" }, value), h("td", { class: "muted" }, extra));
  const totals = Object.entries(run.totals).filter(([name]) => !name.startsWith("system/"));
  return h("div", { class: "card" }, h("table", { class: "plain" },
    h("tbody", {}, Object.entries(run.params).map(([name, value]) => line(name, text(value)))),
    totals.length ? h("tbody", {}, totals.map(([name, t]) => line(name, number(t.last), `${number(t.min)} to ${number(t.max)}, step ${number(t.step)}`))) : null,
    h("tbody", {}, line("id", run.id), line("started", moment(run.started)), line("command", run.command.join(" ")),
      run.tags?.length ? line("tags", run.tags.join(", ")) : null, run.notes ? line("notes", run.notes) : null)));
}

function more(run) {
  return [
    run.attempts.length ? [h("h2", {}, "Attempts"), h("div", { class: "card scroll" }, h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, ["Started", "Host", "Took", "Ended"].map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, run.attempts.map((one) => h("tr", {}, h("td", {}, moment(one.started)), h("td", {}, one.host), h("td", {}, duration(one.seconds)), h("td", {}, one.words))))))] : null,
    run.checkpoints.length || run.outputs.length ? [h("h2", {}, "Kept"), h("div", { class: "card" }, h("table", { class: "plain" }, h("tbody", {},
      run.checkpoints.map((one) => h("tr", {}, h("th", { scope: "row" }, `checkpoint ${one.name}`), h("td", { class: "value" }, bytes(one.size)))),
      run.outputs.slice(0, 20).map((one) => h("tr", {}, h("th", { scope: "row" }, one.name), h("td", { class: "value" }, bytes(one.size)))))),
      h("p", { class: "bar logbar muted" }, h("code", {}, `hostler pull ${run.copy_of || run.name}`)))] : null,
  ];
}

function trouble(run) {
  return h("div", { class: "card" }, h("details", { class: "error", open: true },
    h("summary", {}, h("strong", { class: "s-failed" }, run.failure.kind ?? "failed"), " ", run.failure.message ?? ""),
    run.failure.traceback ? h("pre", { tabindex: 0, "aria-label": "Traceback" }, run.failure.traceback) : null));
}
