// What a page of curves looks at, as the part of its address behind the "?".

import { BANDS } from "./groups.js";
import { spans, unspan } from "./points.js";

export const ALONG = [["step", "Step"], ["epoch", "Epoch"], ["relative", "Relative time"], ["time", "Wall time"]];

export const fresh = () => ({ metrics: [], along: "step", smooth: 0, by: [], band: "deviation", logX: false, logY: false, zoom: null, tall: new Map(), off: new Set() });

// The view that an address means; null where it says nothing of one. What cannot be read is as if it were not there.
export function read(hash) {
  const query = hash.split("?")[1];
  if (query === undefined) return null;
  const asked = new URLSearchParams(query), made = fresh();
  const one = (name, known) => (known.some(([key]) => key === asked.get(name)) ? asked.get(name) : null);
  made.metrics = asked.getAll("metric");
  made.along = one("x", ALONG) ?? made.along;
  made.smooth = Math.min(0.99, Math.max(0, Number(asked.get("smooth")) || 0));
  made.by = asked.getAll("by");
  made.band = one("band", BANDS) ?? made.band;
  made.logX = asked.get("log")?.includes("x") ?? false;
  made.logY = asked.get("log")?.includes("y") ?? false;
  made.zoom = pair(asked.get("zoom"));
  for (const text of asked.getAll("y")) {
    const [, a, b, name] = /^([^,]+),([^,]+),(.*)$/s.exec(text) ?? [];
    const ends = pair(`${a},${b}`);
    if (ends) made.tall.set(name, ends);
  }
  made.off = new Set(asked.getAll("off"));
  return { view: made, runs: asked.has("runs") ? unspan(asked.get("runs")) : null, filter: asked.get("filter"), states: asked.getAll("state") };
}

function pair(text) {
  const ends = (text ?? "").split(",").map(Number);
  return ends.length === 2 && ends.every(Number.isFinite) && ends[0] < ends[1] ? ends : null;
}

export function write(view, { runs = [], filter = "", states = [] }) {
  const made = new URLSearchParams();
  for (const name of view.metrics) made.append("metric", name);
  if (view.along !== "step") made.set("x", view.along);
  if (view.smooth) made.set("smooth", String(view.smooth));
  for (const name of view.by) made.append("by", name);
  if (view.by.length) made.set("band", view.band);
  if (view.logX || view.logY) made.set("log", `${view.logX ? "x" : ""}${view.logY ? "y" : ""}`);
  if (view.zoom) made.set("zoom", view.zoom.map(short).join());
  for (const [name, ends] of view.tall) made.append("y", `${ends.map(short).join()},${name}`);
  for (const key of view.off) made.append("off", key);
  if (runs.length) made.set("runs", spans(runs));
  if (filter) made.set("filter", filter);
  for (const state of states) made.append("state", state);
  return made.toString();
}

const short = (v) => String(Number(v.toPrecision(10)));
