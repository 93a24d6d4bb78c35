// Axes: from values to pixels and back, and where the marks go and what they say.

import { duration, number } from "../words.js";

export function scale(low, high, from, to, log) {
  const warp = log ? Math.log10 : (v) => v;
  const back = log ? (v) => 10 ** v : (v) => v;
  const [a, b] = [warp(low), warp(high)];
  const span = b - a || 1;
  const factor = (to - from) / span;
  return {
    low, high, log, from, to,
    at: log ? (v) => from + (Math.log10(v) - a) * factor : (v) => from + (v - a) * factor,
    value: (pixel) => back(a + ((pixel - from) / (to - from)) * span),
  };
}

// An axis of names: each has a place of its own, and nothing lies between two of them.
export function named(names, from, to) {
  const width = (to - from) / Math.max(1, names.length);
  const place = new Map(names.map((name, n) => [name, from + width * (n + 0.5)]));
  return { names, from, to, width: Math.abs(width), at: (name) => place.get(name), marks: () => names.map((name) => ({ at: place.get(name), text: name })) };
}

// Where marks go: round numbers, about `wanted` of them; powers of ten where the axis is logarithmic, and some between them where these are few.
export function ticks({ low, high, log }, wanted) {
  if (log && high / low > 8) {
    const [a, b] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    for (const between of [[1, 2, 5], [1, 3], [1]]) {
      const step = between.length > 1 ? 1 : Math.max(1, Math.round((b - a) / wanted));
      const found = [];
      for (let power = a; power <= b; power += step) for (const n of between) found.push(n * 10 ** power);
      const seen = found.filter((v) => v >= low * 0.9999 && v <= high * 1.0001);
      if (seen.length <= wanted * 1.2 || between.length === 1) return seen;
    }
  }
  const raw = (high - low) / Math.max(1, wanted);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  return steps(low, high, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw * 0.999));
}

// Marks with their texts, for an axis of numbers, of seconds since a beginning, or of moments.
export function marks(axis, wanted, kind = "number") {
  if (kind === "number" || axis.log) return ticks(axis, wanted).map((v) => ({ at: axis.at(v), text: number(tidy(v)) }));
  const raw = (axis.high - axis.low) / Math.max(1, wanted);
  const step = ROUND.find((n) => n >= raw) ?? Math.ceil(raw / 86400) * 86400;
  const shift = kind === "time" ? new Date(axis.low * 1000).getTimezoneOffset() * 60 : 0;
  return steps(axis.low - shift, axis.high - shift, step).map((v) => ({ at: axis.at(v + shift), text: kind === "time" ? clock(v + shift, step) : v ? duration(v) : "0" }));
}

const ROUND = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

function steps(low, high, step) {
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9 && found.length < 100; n++) found.push(n * step || 0);
  return found;
}

// 0.30000000000000004 is 0.3.
const tidy = (v) => Number(v.toPrecision(12));

function clock(seconds, step) {
  const moment = new Date(seconds * 1000);
  if (step >= 86400) return moment.toLocaleDateString([], { month: "short", day: "numeric" });
  const time = moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...(step < 60 ? { second: "2-digit" } : {}), hour12: false });
  return moment.getHours() + moment.getMinutes() === 0 && step >= 3600 ? moment.toLocaleDateString([], { month: "short", day: "numeric" }) : time;
}

// The range of finite values; only positive ones count on a logarithmic axis.
export function range(lists, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists) for (let n = 0; n < list.length; n++) {
    const v = list[n];
    if (v - v === 0 && (!log || v > 0)) { if (v < low) low = v; if (v > high) high = v; }
  }
  return roomy(low, high, log);
}

// Ends of an axis on which these values lie; there may be none, or only one.
export function roomy(low, high, log) {
  if (low > high) return log ? [0.1, 1] : [0, 1];
  if (low === high) return log ? [low / 2, high * 2] : [low - (Math.abs(low) * 0.1 || 0.5), high + (Math.abs(high) * 0.1 || 0.5)];
  return [low, high];
}

// Whether the axis of these values is logarithmic: as the sweep's file has the range; of others, where positive ones span a lot.
export const logarithmic = (values, given) => Math.min(...values) > 0 && (given ?? Math.max(...values) / Math.min(...values) > 50);
