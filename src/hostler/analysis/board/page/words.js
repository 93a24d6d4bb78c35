// Numbers, times and states as people read them.

export const STATES = ["queued", "running", "paused", "done", "failed", "diverged", "pruned", "stopped", "lost", "unreadable"];

export function number(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(5)));
}

export function text(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return number(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
  const s = Math.max(0, Math.round(seconds));
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function moment(seconds) {
  return seconds ? new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "";
}

export function bytes(size) {
  if (typeof size !== "number") return "";
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, size > 0 ? Math.floor(Math.log10(size) / 3) : 0);
  return `${(size / 1000 ** step).toPrecision(3)} ${units[step]}`;
}

export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

// What a row has taken so far.
export function seconds(row) {
  if (row.seconds !== null && row.seconds !== undefined) return row.seconds;
  return row.state === "running" && row.started ? Date.now() / 1000 - row.started : null;
}
