// Numbers, times and states as people read them.

export const STATES = ["queued", "running", "paused", "parked", "done", "failed", "diverged", "pruned", "stopped", "lost", "unreadable"];

const SMALL = 0.01, LARGE = 1e6, WHOLE = 1e9;

// Four significant digits, 1.63e-3 below 0.01; a whole number as it is. The rule of spec/units.py.
export function number(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  if (Number.isInteger(value) && Math.abs(value) < WHOLE) return String(value);
  const short = Number(value.toPrecision(4)), size = Math.abs(short);
  if (size !== 0 && (size < SMALL || size >= LARGE)) return short.toExponential().replace("e+", "e");
  return String(size >= 1000 ? Math.round(value) : short);
}

// What follows the digits before the decimal point: "", ".9682", ".63e-3", "e-3".
export function fraction(text) {
  return /^-?\d+(\.\d+)?(e-?\d+)?$/.test(text) ? text.replace(/^-?\d+/, "") : "";
}

export function text(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return number(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// Everything that is known of a value, for who points at it.
export function full(value) {
  return value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

export const isOdd = (value) => value === "NaN" || value === "Infinity" || value === "-Infinity";

const two = (n) => String(n).padStart(2, "0");

// 340ms, 4.2s, 45s, 2m 05s, 1h 02m, 3d 04h.
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
  const s = Math.max(0, Math.floor(seconds));
  if (s < 1) return seconds > 0 ? `${Math.floor(seconds * 1000)}ms` : "0s";
  if (s < 10) return `${Math.floor(seconds * 10) / 10}s`;
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
  return `${Math.floor(s / 86400)}d ${two(Math.floor((s % 86400) / 3600))}h`;
}

export function moment(seconds) {
  return seconds ? new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }) : "";
}

// How long ago: 12s ago, 5m ago, 3h ago, 6d ago; a date where it is longer.
export function ago(seconds, now = Date.now() / 1000) {
  if (!seconds) return "";
  const s = Math.max(0, now - seconds);
  if (s < 3) return "just now";
  if (s < 60) return `${Math.floor(s)}s ago`;
  if (s < 3600) return `${Math.floor(s / 60)}m ago`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ago`;
  if (s < 30 * 86400) return `${Math.floor(s / 86400)}d ago`;
  return new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

export function bytes(size) {
  if (typeof size !== "number") return "";
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, size > 0 ? Math.floor(Math.log10(size) / 3) : 0);
  return `${Number((size / 1000 ** step).toPrecision(3))} ${units[step]}`;
}

export function money(cost) {
  return typeof cost !== "number" ? "" : cost > 0 && cost < 0.01 ? "< 0.01" : cost.toFixed(2);
}

// 10,000. toLocaleString would load the data of a language first, which takes longer than a table takes to draw.
export const thousands = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

// The order of names, whatever their case.
export function byName(a, b) {
  const [x, y] = [a.toLowerCase(), b.toLowerCase()];
  return x < y ? -1 : x > y ? 1 : a < b ? -1 : a > b ? 1 : 0;
}

export function count(n, one, many = `${one}s`) {
  return `${thousands(n)} ${n === 1 ? one : many}`;
}

// What a row has taken so far.
export function seconds(row) {
  if (row.seconds !== null && row.seconds !== undefined) return row.seconds;
  const began = row.began ?? row.started;
  return row.state === "running" && began ? (row.earlier ?? 0) + Date.now() / 1000 - began : null;
}

// The state that a run counts as: those that a pruner has set aside are apart from those that a person has paused.
export const kindOf = (row) => (row.state === "paused" && row.paused_by === "rung" ? "parked" : row.state);
export const rungOf = (row) => row.rung ?? row.step; // of a store of earlier versions: how far it has come
export const stateWords = (kind) => (kind === "parked" ? "paused at a rung" : kind);

// The state of a run with what is special about it, and the class that colours it.
export function stateOf(row) {
  const tone = kindOf(row);
  const more = tone === "parked" ? ` · rung ${rungOf(row) ?? ""}`.trimEnd()
    : row.state === "running" && row.stop ? " · stopping"
    : row.lost ? " · its script died" : row.stale ? " · silent"
    : row.why ? ` · ${row.why}` : row.paused_by && row.paused_by !== "pause" ? ` · ${row.paused_by}` : "";
  return { words: row.state + more, tone };
}
