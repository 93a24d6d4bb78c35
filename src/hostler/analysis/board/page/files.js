// What a run has left: checkpoints and files; pictures and texts are shown where one asks for them.

import { get } from "./data.js";
import { h, show } from "./dom.js";
import { copyable, when } from "./parts.js";
import { bytes, count, number } from "./words.js";

const LISTED = 200;

export function filesView(run) {
  const { checkpoints, outputs } = run;
  if (!checkpoints.length && !outputs.length && !run.unkept.length) return null;
  return h("div", { class: "card files" },
    outputs.slice(0, LISTED).map((file) => one(run, file)),
    outputs.length > LISTED ? h("p", { class: "muted" }, `and ${count(outputs.length - LISTED, "more file")}`) : null,
    checkpoints.length ? h("table", { class: "plain" }, h("tbody", {}, checkpoints.map((kept) => h("tr", {},
      h("th", { scope: "row" }, `checkpoint ${kept.name}`), h("td", {}, `step ${number(kept.step)}${kept.finished ? ", finished" : ""}${kept.kept ? ", stays" : ""}`),
      h("td", { class: "num" }, bytes(kept.size)), h("td", { class: "num muted" }, kept.saved ? when(kept.saved) : null))))) : null,
    run.unkept.map((line) => h("p", { class: "s-failed" }, line)),
    copyable(`hostler pull ${run.copy_of || run.name}`, "hostler pull"));
}

// A file is fetched when somebody opens it.
function one(run, file) {
  const place = h("div", { class: "shown" }, h("p", { class: "muted" }, "Reading…"));
  let asked = false;
  const open = async () => {
    if (asked) return;
    asked = true;
    try {
      show(place, shown(await get("file", { id: run.id, name: file.name })));
    } catch (error) {
      asked = false;
      show(place, h("p", { class: "s-failed" }, error.message));
    }
  };
  const made = h("details", { class: "fold file" }, h("summary", {}, h("code", {}, file.name), h("span", { class: "muted" }, ` ${bytes(file.size)}`)), place);
  made.addEventListener("toggle", () => { if (made.open) open(); });
  if (/\.(png|jpe?g|gif|webp|svg)$/i.test(file.name) && file.size < 1_000_000) made.open = true;
  return made;
}

function shown(found) {
  if (found.picture) return h("img", { src: found.picture, alt: found.name });
  if (found.text !== undefined) return [h("pre", { tabindex: 0, role: "region", "aria-label": found.name }, found.text), found.cut ? h("p", { class: "muted" }, "Only its beginning is shown.") : null];
  return h("p", { class: "muted" }, "Neither a text nor a picture that is small enough to be shown.");
}
