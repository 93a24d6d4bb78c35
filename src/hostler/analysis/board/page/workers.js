// Who works on this store, and what fleets cost, as far as anybody has said.

import { get } from "./data.js";
import { h, show } from "./dom.js";
import { count, number } from "./words.js";

export async function workersView(main) {
  document.title = "Workers · hostler";
  const place = h("div", {});
  show(main, h("div", { class: "head" }, h("h1", {}, "Workers")), place);
  const draw = async () => {
    try {
      const { workers, spend } = await get("workers");
      show(place, workers.length ? list(workers) : h("div", { class: "empty card" }, "No workers are running on this store.", h("code", {}, "hostler up")), money(spend));
    } catch (error) { show(place, h("p", { class: "s-failed" }, error.message)); }
  };
  await draw();
  const every = setInterval(() => { if (place.isConnected) draw(); else clearInterval(every); }, 3000);
  return {};
}

function list(workers) {
  const hosts = new Map();
  for (const one of workers) hosts.set(one.host ?? "?", (hosts.get(one.host ?? "?") ?? 0) + 1);
  return [h("p", { class: "muted" }, `${count(workers.length, "worker")} on ${count(hosts.size, "machine")}`),
    h("div", { class: "card scroll" }, h("table", { class: "plain" },
      h("thead", {}, h("tr", {}, ["Worker", "Fleet", "Machine", "Beat", "Runs"].map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, workers.map((one) => h("tr", {}, h("td", { class: "value" }, one.session), h("td", {}, one.fleet ?? ""), h("td", {}, one.host ?? ""),
        h("td", { class: "num" }, number(one.sequence)),
        h("td", {}, one.runs.map((id) => h("div", {}, h("a", { href: `#/run/${encodeURIComponent(id)}` }, id)))))))))];
}

function money(spend) {
  if (!spend.length) return null;
  const kinds = [...new Set(spend.flatMap((one) => Object.keys(one)))].filter((k) => k !== "sweep" && k !== "fleet");
  return [h("h2", {}, "Spend"), h("div", { class: "card scroll" }, h("table", { class: "plain" },
    h("thead", {}, h("tr", {}, ["Fleet", "Sweep", ...kinds].map((t, n) => h("th", { scope: "col", class: n > 1 ? "num" : null }, t)))),
    h("tbody", {}, spend.map((one) => h("tr", {}, h("td", {}, one.fleet), h("td", {}, one.sweep), kinds.map((k) => h("td", { class: "num" }, number(one[k] ?? 0))))))))];
}
