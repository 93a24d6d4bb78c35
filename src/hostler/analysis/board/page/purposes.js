// What fleets cost by purpose: a bar for each launch, training first, and the ideal beside it.

import { get } from "./data.js";
import { h, show } from "./dom.js";
import { money } from "./words.js";
import { colour } from "./plots/colours.js";

const EVERY = 30000; // milliseconds between two looks: all attempts of a launch are read for one

// A place that fills itself once the launches are read, and stays up to date while it is shown.
export function purposes() {
  const place = h("div", {});
  const draw = async () => {
    const { launches } = await get("purposes");
    show(place, launches.length ? [h("h2", {}, "Cost by purpose"), h("div", { class: "card purposes" }, legend(launches), launches.map(bar))] : null);
  };
  const look = () => draw().catch((error) => show(place, h("p", { class: "s-failed" }, error.message)));
  look();
  const every = setInterval(() => { if (place.isConnected) look(); else clearInterval(every); }, EVERY);
  return place;
}

function legend(launches) {
  return h("p", { class: "muted key" }, launches[0].parts.map(([name], n) => {
    const mark = h("i", { "aria-hidden": "true" });
    mark.style.background = colour(n);
    return h("span", {}, mark, name);
  }));
}

function bar({ launch, total, parts }) {
  const words = parts.filter(([, cost]) => cost > 0).map(([name, cost]) => `${name} ${money(cost)}`).join(", ");
  const line = h("div", { class: "progress", role: "img", "aria-label": `${launch}: ${words}` });
  parts.forEach(([name, cost], n) => {
    if (cost <= 0) return;
    const part = h("span", { title: `${name}: ${money(cost)}, ${Math.round((100 * cost) / total)} %` });
    part.style.flexGrow = cost / total;
    part.style.background = colour(n);
    line.append(part);
  });
  return h("div", { class: "purpose" }, h("span", { class: "name" }, launch), line,
    h("span", { class: "words" }, `${money(total)}, ideal ${money(parts[0][1])}`));
}
