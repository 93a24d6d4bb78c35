// All sweeps of the store, a line each.

import { known } from "./data.js";
import { h, show } from "./dom.js";
import { counted, progress } from "./parts.js";
import { duration, number, text } from "./words.js";

export function sweepsView(main) {
  document.title = "hostler";
  const place = h("div", { class: "card scroll" });
  show(main, h("div", { class: "head" }, h("h1", {}, "Sweeps")), place);
  const draw = () => show(place, known.overview.sweeps.length ? table(known.overview.sweeps) : nothing());
  draw();
  return { changed: draw };
}

function nothing() {
  return h("div", { class: "empty" }, "Nothing has been submitted to this store yet.", h("code", {}, "hostler run train.py --lr 0.1"));
}

function table(sweeps) {
  return h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, ["Sweep", "Runs", "Progress", "Best", "Time left"].map((title, n) =>
      h("th", { scope: "col", class: n === 1 ? "num" : null }, title)))),
    h("tbody", {}, sweeps.map(line)));
}

function line(one) {
  const best = one.best;
  return h("tr", {},
    h("td", {}, h("a", { href: `#/sweep/${encodeURIComponent(one.name)}` }, one.title || one.name),
      one.method ? h("span", { class: "muted" }, `  ${one.method}`) : null,
      one.halted ? h("div", { class: "s-failed" }, `halted: ${one.halted}`) : null,
      one.trouble ? h("div", { class: "s-failed" }, one.trouble) : null,
      one.unlogged ? h("div", { class: "muted" }, one.unlogged) : null),
    h("td", { class: "num" }, one.runs.toLocaleString("en")),
    h("td", {}, progress(one.counts, one.runs), h("div", { class: "muted" }, counted(one.counts))),
    h("td", {}, best ? [h("a", { href: `#/run/${encodeURIComponent(best.id)}` }, `${one.metric} ${number(best.value)}`),
      h("div", { class: "muted mono" }, Object.entries(best.params).slice(0, 3).map(([k, v]) => `${k}=${text(v)}`).join(" "))] : ""),
    h("td", { class: "num" }, duration(one.eta)));
}
