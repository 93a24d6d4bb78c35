// What a run printed: its end, followed as it grows, and searched as a whole.

import { get } from "./data.js";
import { h, show } from "./dom.js";
import { count } from "./words.js";

const KEPT = 1_500_000; // characters in the page

export function logView(row) {
  let after = "", busy = false, timer = null, searching = false;
  const said = h("span", { class: "muted", role: "status" });
  const box = h("pre", { class: "log", tabindex: 0, role: "log", "aria-label": `Log of ${row.name}`, "aria-live": "off" });
  const text = document.createTextNode("");
  box.append(text);
  const follow = h("button", { type: "button", "aria-pressed": "true", onclick: () => { press(!following()); if (following()) down(); } }, "Follow");
  const search = h("input", { type: "search", "aria-label": "Search the log", placeholder: "Search the whole log" });
  const following = () => follow.getAttribute("aria-pressed") === "true";
  const press = (on) => follow.setAttribute("aria-pressed", String(on));
  const down = () => { box.scrollTop = box.scrollHeight; };
  box.addEventListener("wheel", (event) => { if (event.deltaY < 0) press(false); }, { passive: true });

  const add = (more) => {
    if (!more) return;
    text.data = (text.data + more).slice(-KEPT);
    if (following()) down();
  };
  const first = async () => {
    try {
      const found = await get("log", { id: row.id });
      after = found.after;
      text.data = found.text;
      said.textContent = found.cut ? `the end of it; hostler logs ${row.name} shows all` : found.text ? "" : "nothing printed yet";
      down();
    } catch (error) { said.textContent = error.message; }
  };
  const more = async () => {
    if (busy || searching || !box.isConnected) return;
    busy = true;
    try {
      const found = await get("log", { id: row.id, after });
      after = found.after;
      if (found.text) { said.textContent = ""; add(found.text); }
    } catch (error) { said.textContent = error.message; }
    busy = false;
  };
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      searching = search.value !== "";
      if (!searching) { box.replaceChildren(text); down(); more(); said.textContent = ""; return; }
      try {
        const found = await get("log", { id: row.id, search: search.value });
        said.textContent = count(found.count, "line") + (found.lines.length < found.count ? `, the last ${found.lines.length}` : "");
        show(box, found.lines.map((line) => [h("span", { class: "muted" }, `${line.line}  `), `${line.text}\n`]));
      } catch (error) { said.textContent = error.message; }
    }, 250);
  });
  first();
  const every = setInterval(() => { if (!box.isConnected) clearInterval(every); else if (following()) more(); }, 1000);
  return h("section", { class: "card", "aria-label": "Log" }, h("div", { class: "bar logbar" }, search, follow, said), box);
}
