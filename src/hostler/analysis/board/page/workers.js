// The workers of this store: what each does now, how much of its machine is used, and what fleets cost.

import { get } from "./data.js";
import { h, show } from "./dom.js";
import { meter } from "./parts.js";
import { purposes } from "./purposes.js";
import { bytes, count, duration, moment, money, number } from "./words.js";

const SILENT = 60; // seconds after which a worker that says nothing is marked

export async function workersView(main) {
  document.title = "Workers · hostler";
  const place = h("div", {}), said = h("span", { class: "muted" });
  show(main, h("div", { class: "head" }, h("h1", {}, "Workers"), said), place, purposes());
  const draw = async () => {
    try {
      const { workers, spend } = await get("workers");
      const hosts = new Set(workers.map((one) => one.host)).size;
      said.textContent = workers.length ? `${count(workers.length, "worker")} on ${count(hosts, "machine")}` : "";
      show(place, workers.length ? h("div", { class: "workers" }, workers.map(worker))
        : h("div", { class: "empty card" }, "No workers are running on this store.", h("code", {}, "hostler up")), spent(spend));
    } catch (error) { show(place, h("p", { class: "s-failed" }, error.message)); }
  };
  await draw();
  const every = setInterval(() => { if (place.isConnected) draw(); else clearInterval(every); }, 3000);
  return {};
}

function worker(one) {
  const silent = one.age > SILENT, room = one.room ?? {};
  const sum = (name) => one.runs.reduce((all, run) => all + (Number(run.use[name]) || 0), 0);
  const cost = one.runs.reduce((all, run) => (typeof run.cost === "number" ? (all ?? 0) + run.cost : all), null);
  const gpu = one.runs.some((run) => "gpu" in run.use);
  return h("article", { class: "card worker" },
    h("header", {}, h("h2", { title: one.session }, one.fleet || one.host || "worker"), one.fleet ? h("span", { class: "muted" }, one.host ?? "") : null, h("span", { class: "spacer" }),
      h("span", { class: silent ? "s-failed" : "muted", title: one.age === null ? null : moment(Date.now() / 1000 - one.age) }, one.age === null ? "" : one.age < 1 ? "seen just now" : `seen ${duration(Math.floor(one.age))} ago`)),
    h("div", { class: "meters" },
      room.slots ? meter("slots", one.runs.length, room.slots, `${one.runs.length} of ${room.slots}`) : null,
      room.cpus ? meter("CPU", sum("cpu"), room.cpus, `${number(Number(sum("cpu").toFixed(1)))} of ${number(room.cpus)}`) : null,
      room.memory ? meter("memory", sum("memory"), room.memory, `${bytes(sum("memory"))} of ${bytes(room.memory)}`, { ends: true }) : null,
      room.gpus ? meter("GPU", gpu ? sum("gpu") / Math.max(1, one.runs.length) : 0, 100, gpu ? `${Math.round(sum("gpu") / Math.max(1, one.runs.length))} %` : "idle") : null,
      room.gpus && room.gpu_memory ? meter("GPU memory", sum("gpu_memory"), room.gpu_memory, `${bytes(sum("gpu_memory"))} of ${bytes(room.gpu_memory)}`, { ends: true }) : null),
    one.runs.length ? h("ul", { class: "now" }, one.runs.map((run) => h("li", {}, h("a", { href: `#/run/${encodeURIComponent(run.id)}` }, run.name),
      typeof run.step === "number" ? h("span", { class: "muted" }, ` step ${number(run.step)}`) : null)))
      : h("p", { class: "muted" }, "waits for a run"),
    cost !== null ? h("p", { class: "muted" }, `cost of these runs ${money(cost)}`) : null);
}

function spent(spend) {
  if (!spend.length) return null;
  const kinds = [...new Set(spend.flatMap((one) => Object.keys(one)))].filter((k) => k === "spent" || spend.some((one) => Number(one[k]))); // no columns of zeros alone
  return [h("h2", {}, "Cost of fleets"), h("div", { class: "card scroll", tabindex: 0, role: "region", "aria-label": "Cost of fleets" }, h("table", { class: "plain fleets" },
    h("thead", {}, h("tr", {}, ["Fleet", "Sweep", ...kinds].map((t, n) => h("th", { scope: "col", class: n > 1 ? "num" : null }, t)))),
    h("tbody", {}, spend.map((one) => h("tr", {}, h("td", {}, one.fleet), h("td", {}, one.sweep), kinds.map((k) => h("td", { class: "num", title: String(one[k] ?? 0) }, money(one[k] ?? 0))))))))];
}
