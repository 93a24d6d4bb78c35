// All sweeps of the store: those that run first, then the newest.

import { known } from "./data.js";
import { h, show } from "./dom.js";
import { counted, progress, spark, when, which } from "./parts.js";
import { count, duration, full, money, number, text } from "./words.js";

export function sweepsView(main) {
  document.title = "hostler";
  const place = h("div", {}), said = h("span", { class: "muted" });
  show(main, h("div", { class: "head" }, h("h1", {}, "Sweeps"), said), place);
  const draw = () => {
    const sweeps = [...known.overview.sweeps].sort(order);
    const running = sweeps.reduce((sum, one) => sum + (one.counts.running ?? 0), 0);
    said.textContent = sweeps.length ? `${count(sweeps.length, "sweep")}${running ? ` · ${count(running, "run")} running` : ""}` : "";
    show(place, sweeps.length ? table(sweeps) : nothing());
  };
  draw();
  return { changed: draw };
}

const isRunning = (one) => (one.counts.running ?? 0) > 0;
const order = (a, b) => isRunning(b) - isRunning(a) || (b.submitted ?? 0) - (a.submitted ?? 0) || a.name.localeCompare(b.name);

function nothing() {
  return h("div", { class: "empty card" }, "Nothing has been submitted to this store yet.", h("code", {}, "hostler run train.py --lr 0.1"));
}

function table(sweeps) {
  const priced = sweeps.some((one) => typeof one.cost === "number"), timed = sweeps.some((one) => one.eta);
  const titles = ["Sweep", "Progress", "Best", "Best so far", ...(timed ? ["Time left"] : []), ...(priced ? ["Cost"] : [])];
  return h("div", { class: "card scroll", tabindex: 0, role: "region", "aria-label": "Sweeps" }, h("table", { class: "plain sweeps" },
    h("thead", {}, h("tr", {}, titles.map((title, n) => h("th", { scope: "col", class: n > 3 ? "num" : null }, title)))),
    h("tbody", {}, sweeps.map((one) => line(one, timed, priced)))));
}

function line(one, timed, priced) {
  const best = one.best;
  const trend = one.spark && best ? spark(one.spark, `Best ${one.metric} so far, from ${number(one.spark[0])} to ${number(one.spark.at(-1))}`) : null;
  return h("tr", {},
    h("td", { class: "what" }, h("a", { class: "strong", href: `#/sweep/${encodeURIComponent(one.name)}` }, one.title || one.name),
      h("div", { class: "muted" }, [one.method, count(one.runs, "run")].filter(Boolean).join(" · "), one.submitted ? [" · ", when(one.submitted)] : null),
      one.halted ? h("div", { class: "s-failed" }, `halted: ${one.halted}`) : null,
      one.trouble ? h("div", { class: "s-failed" }, one.trouble) : null,
      one.unlogged ? h("div", { class: "muted" }, one.unlogged) : null),
    h("td", { class: "how" }, progress(one.counts, one.runs), h("div", { class: "muted" }, counted(one.counts).split(", ").map((part, n) => [n ? ", " : null, h("span", { class: "unbroken" }, part)]))),
    h("td", { class: "best" }, best ? [h("a", { class: "value", href: `#/run/${encodeURIComponent(best.id)}`, title: `${one.metric} ${full(best.value)}` }, number(best.value)),
      h("span", { class: "muted" }, ` ${one.metric}${which(best)}`),
      h("div", { class: "muted mono" }, Object.entries(best.params).slice(0, 3).map(([k, v]) => `${k}=${text(v)}`).join("  "))] : h("span", { class: "muted none" }, "–")),
    h("td", { class: "trend" }, trend ?? h("span", { class: "muted none" }, "–")),
    timed ? h("td", { class: "num left" }, one.eta ? duration(one.eta) : h("span", { class: "muted none" }, "–")) : null,
    priced ? h("td", { class: "num cost" }, money(one.cost) || h("span", { class: "muted none" }, "–")) : null);
}
