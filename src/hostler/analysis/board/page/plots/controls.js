// Controls above a plot: a choice of one, a choice of several, a switch.

import { h, show } from "../dom.js";

export function choose(title, pairs, value, act) {
  const select = h("select", { "aria-label": title }, pairs.map(([key, words]) => h("option", { value: key, selected: key === value }, words)));
  select.addEventListener("change", () => act(select.value));
  const disable = (key, off, why) => {
    const option = [...select.options].find((one) => one.value === key);
    option.disabled = off;
    option.title = off ? why : "";
  };
  return { element: h("label", { class: "field" }, title, select), select, disable };
}

export function toggle(title, on, act) {
  const button = h("button", { type: "button", "aria-pressed": String(on) }, title);
  button.addEventListener("click", () => {
    const now = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(now));
    act(now);
  });
  return button;
}

// Several names of a list that opens below its button; it closes with Escape and with a click elsewhere.
export function choices(title, of, act) {
  const list = h("div", { class: "options", role: "group", "aria-label": `${title}: ${of}` });
  const words = h("b", {}), summary = h("summary", {}, `${title} `, words);
  const element = h("details", { class: "pick" }, summary, list);
  const chosen = () => [...list.querySelectorAll("input:checked")].map((box) => box.value);
  const name = (names) => { words.textContent = names.length > 2 ? `${names[0]} and ${names.length - 1} more` : names.join(", ") || "none"; };
  list.addEventListener("change", () => { name(chosen()); act(chosen()); });
  element.addEventListener("keydown", (event) => { if (event.key === "Escape" && element.open) { element.open = false; summary.focus(); event.stopPropagation(); } });
  element.addEventListener("focusout", (event) => { if (event.relatedTarget && !element.contains(event.relatedTarget)) element.open = false; });
  const away = (event) => {
    if (!element.isConnected) document.removeEventListener("pointerdown", away);
    else if (!element.contains(event.target)) element.open = false;
  };
  element.addEventListener("toggle", () => (element.open ? document.addEventListener("pointerdown", away) : document.removeEventListener("pointerdown", away)));
  const fill = (names, now) => {
    name(now);
    const key = names.join("\u0000");
    if (list.dataset.key === key) return;
    list.dataset.key = key;
    show(list, names.map((one) => h("label", {}, h("input", { type: "checkbox", value: one, checked: now.includes(one) }), one)));
  };
  return { element, fill };
}
