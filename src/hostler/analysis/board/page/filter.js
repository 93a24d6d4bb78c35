// The filter's small language: words, and conditions like lr<0.01 state=done name~^a; a leading - turns one round.
// What has spaces goes into quotes. Every part must hold.

import { asNumber } from "./rows.js";
import { thousands } from "./words.js";

const PART = /(-?)(?:("(?:[^"\\]|\\.)*"|[^\s"=<>!~]+)\s*(<=|>=|!=|=|<|>|~)\s*("(?:[^"\\]|\\.)*"|[^\s"]\S*|)|("(?:[^"\\]|\\.)*"|\S+))/g;
const FACTS = ["name", "state", "step", "host", "tags", "seconds", "cost", "attempt", "index", "failure", "value", "why"];

// A test of a row; `names` are those of the columns there are. Throws an Error that says what cannot be read.
export function parse(source, names = null) {
  const tests = [];
  for (const [part, minus, key, op, value, word] of source.matchAll(PART)) {
    if (key && value === "") throw new Error(`${part.trim()} needs a value after ${op}`);
    if (word?.startsWith('"') && (word.length === 1 || !word.endsWith('"'))) throw new Error('a quote " is not closed');
    if (key) check(bare(key), op, bare(value), names);
    const one = key ? condition(bare(key), op, bare(value)) : contains(bare(word));
    tests.push(minus ? (row) => !one(row) : one);
  }
  if (tests.length === 1) return tests[0];
  return (row) => { for (const test of tests) if (!test(row)) return false; return true; };
}

function check(key, op, value, names) {
  const plain = key.replace(/^(param|metric)\./, "");
  if (names && !FACTS.includes(key) && !names.has(plain)) {
    const near = nearest(plain, [...names, ...FACTS]);
    throw new Error(`there is no parameter or metric ${key}${near ? `; did you mean ${near}?` : ""}`);
  }
  if ("<>".includes(op[0]) && !/^[+-]?(\d|\.\d|inf)/i.test(value)) throw new Error(`${key}${op} needs a number, not ${value}`);
  if ("<>".includes(op[0]) && Number.isNaN(Number(value))) throw new Error(`${value} is not a number`);
  if (op === "~") try { new RegExp(value); } catch { throw new Error(`${value} is not a regular expression`); }
}

// The name that somebody may have meant: at most two letters away, or one that begins so.
function nearest(word, names) {
  const near = names.map((name) => [distance(word.toLowerCase(), name.toLowerCase()), name]).sort((a, b) => a[0] - b[0])[0];
  return near && near[0] <= Math.min(2, word.length - 1) ? near[1] : names.find((name) => name.toLowerCase().startsWith(word.toLowerCase())) ?? null;
}

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
    row = next;
  }
  return row[b.length];
}

// The value of a column: a parameter, else a metric, else a fact of the run.
export function cell(row, key) {
  return getter(key)(row);
}

function getter(key) {
  if (key.startsWith("param.")) return own("params", key.slice(6));
  if (key.startsWith("metric.")) return own("metrics", key.slice(7));
  if (key in Object.prototype) return (row) => own("params", key)(row) ?? own("metrics", key)(row);
  return (row) => row.params[key] ?? row.metrics[key] ?? row[key];
}

function own(group, name) {
  return name in Object.prototype ? (row) => (Object.hasOwn(row[group], name) ? row[group][name] : undefined) : (row) => row[group][name];
}

function bare(word) {
  return word.startsWith('"') && word.endsWith('"') && word.length > 1 ? word.slice(1, -1).replace(/\\(.)/g, "$1") : word;
}

// A word somewhere in the facts or parameters. Nothing is put together for it: each name, and each text that a
// parameter has, is looked at once; a number only for a word that may stand in one.
function contains(word) {
  const wanted = word.toLowerCase(), inNumbers = /[\d.+=-]|^e$/.test(wanted), known = new Map();
  const holds = (text) => typeof text === "string" && text.toLowerCase().includes(wanted);
  const parameter = (name, value) => {
    if (!known.has(name)) known.set(name, { named: holds(name), texts: new Map() });
    const { named, texts } = known.get(name);
    if (named) return true;
    if (typeof value === "number") return inNumbers && `${name}=${value}`.toLowerCase().includes(wanted);
    if (!texts.has(value)) texts.set(value, holds(`${name}=${value}`));
    return texts.get(value);
  };
  return (row) => {
    if (row.state.includes(wanted) || holds(row.name) || holds(row.host) || holds(row.failure) || row.tags?.some(holds)) return true;
    for (const name in row.params) if (parameter(name, row.params[name])) return true;
    return false;
  };
}

// The number of a column in a row. Rows that came by column are not taken apart for it: their numbers lie together.
function numberOf(key, of) {
  let home = null, version = 0, numbers = null;
  return (row) => {
    if (!row.home) return asNumber(of(row));
    if (row.home !== home || home.version !== version) {
      home = row.home;
      version = home.version;
      numbers = home.numbers(key, of);
    }
    return numbers[row.place];
  };
}

function condition(key, op, value) {
  const of = getter(key);
  const there = (v) => v !== undefined && v !== null;
  if (op === "~") {
    const pattern = new RegExp(value, "i");
    return (row) => { const v = of(row); return there(v) && pattern.test(String(v)); };
  }
  const wanted = /^[+-]?inf(inity)?$/i.test(value) ? (value.startsWith("-") ? -Infinity : Infinity) : Number(value);
  const numeric = value !== "" && !Number.isNaN(wanted), low = value.toLowerCase();
  const same = (v) => (numeric && typeof v === "number" ? v === wanted : Array.isArray(v) ? v.includes(value) : String(v).toLowerCase() === low);
  const number = numberOf(key, of);
  switch (op) {
    case "=": return (row) => { const v = of(row); return there(v) ? same(v) : value === "none"; };
    case "!=": return (row) => { const v = of(row); return there(v) ? !same(v) : value !== "none"; };
    case "<": return (row) => number(row) < wanted;
    case ">": return (row) => number(row) > wanted;
    case "<=": return (row) => number(row) <= wanted;
    default: return (row) => number(row) >= wanted;
  }
}

// What may stand where somebody types: names of columns, or values of the one before the sign. [{text, insert}]
export function complete(source, at, rows, names) {
  const before = source.slice(0, at), word = /(?:"[^"]*|\S*)$/.exec(before)[0].replace(/^-/, "");
  const found = /^("[^"]*"|[^\s"=<>!~]+)(<=|>=|!=|=|~|<|>)(.*)$/.exec(word);
  const put = (insert, drop) => ({ source: source.slice(0, at - drop) + insert + source.slice(at), at: at - drop + insert.length });
  if (!found) {
    if (!word) return [];
    const low = word.toLowerCase();
    const fitting = [...names, ...FACTS].filter((name) => name.toLowerCase().includes(low) && name !== word);
    fitting.sort((a, b) => b.toLowerCase().startsWith(low) - a.toLowerCase().startsWith(low));
    return [...new Set(fitting)].slice(0, 8).map((name) => ({ text: name, ...put(quoted(name), word.length) }));
  }
  const [, key, op, typed] = found;
  if (op !== "=" && op !== "!=") return [];
  const of = getter(bare(key)), counts = new Map();
  for (const row of rows) {
    for (const value of [of(row)].flat()) if (value !== undefined && value !== null) counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
    if (counts.size > 500) break;
  }
  const low = typed.replace(/^"/, "").toLowerCase();
  return [...counts].filter(([value]) => value.toLowerCase().startsWith(low) && value !== typed).sort((a, b) => b[1] - a[1]).slice(0, 8)
    .map(([value, n]) => ({ text: value, more: thousands(n), ...put(`${quoted(value)} `, typed.length) }));
}

const quoted = (word) => (/[\s"=<>!~]/.test(word) || word === "" ? `"${word.replace(/(["\\])/g, "\\$1")}"` : word);

// Numbers first, then text, then nothing; what is no number after those that are.
export function compare(a, b, down) {
  const [ra, rb] = [rank(a), rank(b)];
  if (ra !== rb) return ra - rb;
  if (ra === 3 || ra === 1) return 0;
  const order = ra === 0 ? Number(a) - Number(b) : words().compare(String(a), String(b));
  return down ? -order : order;
}

// Rows in that order of their values; each value is asked for, and ranked, once.
export function ordered(rows, value, down) {
  const kinds = [[], [], [], []];
  for (const row of rows) {
    const v = value(row), kind = rank(v);
    kinds[kind].push({ by: kind === 0 ? Number(v) : kind === 2 ? String(v) : 0, row });
  }
  const sign = down ? -1 : 1;
  kinds[0].sort((a, b) => sign * (a.by - b.by));
  if (kinds[2].length) kinds[2].sort((a, b) => sign * words().compare(a.by, b.by));
  return kinds.flatMap((kind) => kind.map((one) => one.row));
}

// Made where text is sorted: it loads the data of a language.
let collator = null;
const words = () => (collator ??= new Intl.Collator("en", { numeric: true }));

function rank(v) {
  if (v === null || v === undefined || v === "") return 3;
  if (v === "NaN") return 1;
  return typeof v === "number" || v === "Infinity" || v === "-Infinity" ? 0 : 2;
}
