// The filter's small language: words, and conditions like lr<0.01 state=done name~^a; a leading - turns one round.
// What has spaces goes into quotes. Every part must hold.

const PART = /(-?)(?:("(?:[^"\\]|\\.)*"|[^\s"=<>!~]+)\s*(<=|>=|!=|=|<|>|~)\s*("(?:[^"\\]|\\.)*"|\S+)|("(?:[^"\\]|\\.)*"|\S+))/g;

export function parse(source) {
  const tests = [];
  for (const [, minus, key, op, value, word] of source.matchAll(PART)) {
    const one = key ? condition(bare(key), op, bare(value)) : contains(bare(word));
    tests.push(minus ? (row) => !one(row) : one);
  }
  return (row) => tests.every((test) => test(row));
}

// The value of a column: a fact of the run, else a parameter, else a metric.
export function cell(row, key) {
  if (key.startsWith("param.")) return row.params[key.slice(6)];
  if (key.startsWith("metric.")) return row.metrics[key.slice(7)];
  if (Object.hasOwn(row.params, key)) return row.params[key];
  if (Object.hasOwn(row.metrics, key)) return row.metrics[key];
  return Object.hasOwn(row, key) ? row[key] : undefined;
}

function bare(word) {
  return word.startsWith('"') && word.endsWith('"') && word.length > 1 ? word.slice(1, -1).replace(/\\(.)/g, "$1") : word;
}

function contains(word) {
  const wanted = word.toLowerCase();
  return (row) => words(row).includes(wanted);
}

function words(row) {
  row.words ??= [row.name, row.state, row.host, ...(row.tags ?? []), row.failure,
    ...Object.entries(row.params).map(([k, v]) => `${k}=${v}`)].join("\u0000").toLowerCase();
  return row.words;
}

function condition(key, op, value) {
  if (op === "~") {
    let pattern;
    try { pattern = new RegExp(value, "i"); } catch { return () => false; }
    return (row) => { const v = cell(row, key); return v !== undefined && v !== null && pattern.test(String(v)); };
  }
  const wanted = Number(value), numeric = value !== "" && !Number.isNaN(wanted);
  const same = (v) => (numeric && typeof v === "number" ? v === wanted
    : Array.isArray(v) ? v.includes(value) : String(v).toLowerCase() === value.toLowerCase());
  const there = (v) => v !== undefined && v !== null;
  const number = (v) => (typeof v === "number" ? v : typeof v === "string" && v !== "" ? Number(v) : NaN);
  switch (op) {
    case "=": return (row) => { const v = cell(row, key); return there(v) ? same(v) : value === "none"; };
    case "!=": return (row) => { const v = cell(row, key); return there(v) ? !same(v) : value !== "none"; };
    case "<": return (row) => number(cell(row, key)) < wanted;
    case ">": return (row) => number(cell(row, key)) > wanted;
    case "<=": return (row) => number(cell(row, key)) <= wanted;
    default: return (row) => number(cell(row, key)) >= wanted;
  }
}

// Numbers first, then text, then nothing; what is no number after those that are.
export function compare(a, b, down) {
  const [ra, rb] = [rank(a), rank(b)];
  if (ra !== rb) return ra - rb;
  if (ra === 3 || ra === 1) return 0;
  const order = ra === 0 ? Number(a) - Number(b) : String(a).localeCompare(String(b), "en", { numeric: true });
  return down ? -order : order;
}

function rank(v) {
  if (v === null || v === undefined || v === "") return 3;
  if (v === "NaN") return 1;
  return typeof v === "number" || v === "Infinity" || v === "-Infinity" ? 0 : 2;
}
