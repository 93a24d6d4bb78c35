// The box of the filter: completes names and values, and says under it what cannot be read.

import { h, show } from "./dom.js";
import { complete, parse } from "./filter.js";

// `filter(test)` gets each filter that can be read; `about()` gives the rows and the names of their columns.
export function filterBox({ value, about, filter }) {
  let offers = [], at = -1;
  const said = h("p", { class: "problem", id: "filter-problem", role: "status" });
  const list = h("ul", { class: "offers card", id: "filter-offers", role: "listbox", "aria-label": "Completions", hidden: true });
  const box = h("input", {
    type: "text", id: "filter", role: "combobox", "aria-label": "Filter runs", "aria-expanded": "false", "aria-controls": "filter-offers", "aria-autocomplete": "list",
    "aria-describedby": "filter-problem", value, spellcheck: "false", autocomplete: "off", placeholder: "Filter: lr<0.01 state=done model~resnet -seed=3",
  });
  const close = () => { offers = []; list.hidden = true; box.setAttribute("aria-expanded", "false"); box.removeAttribute("aria-activedescendant"); };
  const read = () => {
    try {
      const test = parse(box.value, about().names);
      said.textContent = "";
      box.removeAttribute("aria-invalid");
      filter(box.value, test);
    } catch (error) {
      said.textContent = `Not a filter: ${error.message}.`;
      box.setAttribute("aria-invalid", "true");
      filter(box.value, null);
    }
  };
  const offer = () => {
    const { rows, names } = about();
    offers = complete(box.value, box.selectionStart ?? box.value.length, rows, names);
    at = -1;
    if (!offers.length) { close(); return; }
    show(list, offers.map((one, n) => h("li", { role: "option", id: `offer-${n}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); take(n); } }, h("span", {}, one.text), one.more ? h("span", { class: "muted" }, one.more) : null)));
    list.hidden = false;
    box.setAttribute("aria-expanded", "true");
  };
  const take = (n) => {
    box.value = offers[n].source;
    box.setSelectionRange(offers[n].at, offers[n].at);
    close();
    read();
    if (!/\s$/.test(box.value.slice(0, box.selectionStart))) offer();
  };
  const mark = (n) => {
    at = (n + offers.length) % offers.length;
    [...list.children].forEach((one, i) => one.setAttribute("aria-selected", String(i === at)));
    box.setAttribute("aria-activedescendant", `offer-${at}`);
  };
  box.addEventListener("input", () => { read(); setTimeout(offer); });
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { if (offers.length) close(); else { box.value = ""; read(); } event.preventDefault(); return; }
    if (!offers.length) return;
    if (event.key === "ArrowDown") mark(at + 1);
    else if (event.key === "ArrowUp") mark(at < 0 ? offers.length - 1 : at - 1);
    else if (event.key === "Enter" && at >= 0) take(at);
    else if (event.key === "Tab" && !event.shiftKey) take(Math.max(0, at));
    else return;
    event.preventDefault();
  });
  return { element: h("div", { class: "filterbox" }, box, list, said), box, read };
}
