// The page: which view an address means, the theme, and what is wrong with the store.

import { begin, known, Locked, onChange, onLocked } from "./data.js";
import { h, show } from "./dom.js";
import { sweepView } from "./sweep.js";
import { keep, onNew, take } from "./token.js";

// What a first look at a sweep does not need comes when it is asked for.
const main = document.getElementById("main");
let view = null, visit = 0;
let missed = null; // runs that changed while a view was being made, which is told of them afterwards

// A view draws on a ground of its own, which is nowhere once one has gone elsewhere: what comes late is not shown.
async function route() {
  const [place = "", name = "", tab] = location.hash.replace(/^#\/?|\?.*$/gs, "").split("/").map(plain); // what follows a ? is the view's own
  const ticket = ++visit;
  view = missed = null;
  for (const link of document.querySelectorAll(".top nav a")) {
    const own = link.getAttribute("href").slice(2);
    const on = own === place || (own === "" && ["sweep", "run"].includes(place));
    on ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  const ground = { dataset: main.dataset, replaceChildren: (...made) => { if (ticket === visit) main.replaceChildren(...made); } };
  try {
    const made = await (place === "sweep" ? sweepView(ground, name, tab)
      : place === "run" ? (await import("./run.js")).runView(ground, name)
      : place === "workers" ? (await import("./workers.js")).workersView(ground)
      : place === "errors" ? (await import("./errors.js")).errorsView(ground)
      : (await import("./sweeps.js")).sweepsView(ground));
    if (ticket !== visit) return;
    view = made;
    if (missed) view?.changed?.(missed);
  } catch (error) {
    if (ticket === visit && !(error instanceof Locked)) show(main, unshown(error, h("p", {}, h("a", { href: "#/" }, "All sweeps"))));
  }
}

function unshown(error, ...more) {
  return h("div", { class: "empty" }, h("h1", {}, "This page cannot be shown"), h("p", {}, error.message), more);
}

// What stands in the address; as it is where nobody could have written it.
function plain(word) {
  try { return decodeURIComponent(word); } catch { return word; }
}

function trouble() {
  const { trouble, writable, store } = known.overview;
  const box = document.getElementById("trouble");
  const words = trouble || (writable ? "" : "This store is read-only here: runs cannot be stopped or tried again.");
  box.hidden = !words;
  if (box.textContent !== words) box.textContent = words;
  const line = document.getElementById("store");
  line.textContent = store;
  line.title = store;
}

function themed() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const set = (dark) => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Light theme" : "Dark theme");
  };
  let kept = localStorage.getItem("theme");
  set(kept ? kept === "dark" : system.matches);
  system.addEventListener("change", () => { if (!kept) set(system.matches); });
  button.addEventListener("click", () => {
    kept = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    localStorage.setItem("theme", kept);
    set(kept === "dark");
    view?.changed?.(new Set());
  });
}

// A page without the token, or with that of a dashboard that has ended.
function unlock() {
  ++visit;
  view = null;
  document.getElementById("live").textContent = "locked";
  const box = h("input", { type: "password", "aria-label": "Token", autocomplete: "off", required: true });
  const use = (event) => {
    event.preventDefault();
    keep(box.value.trim().replace(/^.*#token=/, ""));
    location.reload();
  };
  show(main, h("form", { class: "empty", onsubmit: use }, h("h1", {}, "This dashboard is locked"), h("p", {}, "Open the link that ", h("code", {}, "hostler ui"), " printed, or paste the token."),
    h("div", { class: "bar" }, box, h("button", { type: "submit", class: "strong" }, "Open"))));
}

// Changes may come faster than a page is worth drawing again: at most one drawing a quarter of a second.
let waiting = null, timer = 0;
onChange((ids, now) => {
  if (waiting) for (const id of ids) waiting.add(id);
  else { waiting = new Set(ids); timer = setTimeout(redraw, 250); }
  if (now) { clearTimeout(timer); redraw(); }
});

function redraw() {
  const all = waiting;
  waiting = null;
  if (!known.overview) return;
  trouble();
  if (view) view.changed?.(all);
  else missed = new Set([...missed ?? [], ...all]);
}

themed();
onLocked(unlock);
onNew(() => location.reload());
addEventListener("hashchange", () => {
  if (take()) { location.reload(); return; }
  if (known.overview) route();
  main.focus({ preventScroll: true });
});
try {
  await begin();
  trouble();
  await route();
} catch (error) {
  if (!(error instanceof Locked)) show(main, unshown(error));
}
