// What a run printed: its end, followed as it grows, and searched as a whole.

import { get } from "./data.js";
import { h, show } from "./dom.js";
import { count } from "./words.js";

const KEPT = 1_500_000; // characters in the page

// As a terminal would leave it: no colours, and of a line that was written over only what came last.
export function printed(text) {
  const plain = text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])/g, "");
  if (!plain.includes("\r")) return plain;
  return plain.split("\n").map((line) => {
    const parts = line.split("\r");
    while (parts.length > 1 && parts.at(-1) === "") parts.pop(); // a line's end, or one that is yet to be written over
    return parts.at(-1);
  }).join("\n");
}

export function logView(row) {
  let after = "", raw = "", busy = false, timer = null, searching = false;
  const said = h("span", { class: "muted", role: "status" });
  const box = h("pre", { class: "log", tabindex: 0, role: "log", "aria-label": `Log of ${row.name}`, "aria-live": "off" });
  const text = document.createTextNode("");
  box.append(text);
  const follow = h("button", { type: "button", "aria-pressed": "true", onclick: () => { press(!following()); if (following()) down(); } }, "Follow");
  const search = h("input", { type: "search", "aria-label": "Search the log", placeholder: "Search the whole log" });
  const following = () => follow.getAttribute("aria-pressed") === "true";
  const press = (on) => follow.setAttribute("aria-pressed", String(on));
  const down = () => { box.scrollTop = box.scrollHeight; };
  // Whoever scrolls up, by wheel, keys or bar, reads; whoever is at the end follows.
  box.addEventListener("scroll", () => { if (!searching) press(box.scrollTop + box.clientHeight >= box.scrollHeight - 8); }, { passive: true });

  const add = (more) => {
    if (!more) return;
    const last = following();
    raw = (raw + more).slice(-KEPT);
    text.data = printed(raw);
    if (last) down();
  };
  const first = async () => {
    try {
      const found = await get("log", { id: row.id });
      after = found.after;
      raw = found.text;
      text.data = printed(raw);
      said.textContent = found.cut ? `only the end is shown; hostler logs ${row.name} prints all` : found.text ? "" : "nothing printed yet";
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
        show(box, found.lines.map((line) => [h("span", { class: "muted" }, `${line.line}  `), `${printed(line.text)}\n`]));
      } catch (error) { said.textContent = error.message; }
    }, 250);
  });
  first();
  const every = setInterval(() => { if (!box.isConnected) clearInterval(every); else if (following()) more(); }, 1000);
  return h("div", { class: "card" }, h("div", { class: "bar logbar" }, search, follow, said), box);
}
