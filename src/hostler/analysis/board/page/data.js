// What the page knows of the store: fetched once, then kept up to date by the stream of changes.

import { Columns, rowsOf } from "./rows.js";
import { has, headers } from "./token.js";

const listeners = new Set();
const asked = new Map(); // sweep → its table on its way
const coming = new Map(); // sweep → rows that changed while its table is on its way
export const known = { overview: null, tables: new Map(), live: false };

export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export async function get(path, query = {}) {
  return answer(await ask(`${path}?${words(query)}`));
}

// An answer of numbers as they lie in memory.
export async function getBytes(path, query = {}) {
  const response = await ask(`${path}?${words(query)}`);
  return response.ok ? response.arrayBuffer() : answer(response);
}

function words(query) {
  const made = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) for (const one of [value].flat()) made.append(name, one);
  return made;
}

export async function post(path, body) {
  return answer(await ask(path, { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(body) }));
}

export class Locked extends Error {}

// The answer to a question; Locked where the token is missing, or that of another dashboard.
async function ask(path, options = {}) {
  const response = has() ? await (taken(path) ?? fetch(`/api/${path}`, { headers: headers(), credentials: "omit", ...options })) : null;
  if (response && response.status !== 401) return response;
  locked();
  throw new Locked("This dashboard is locked.");
}

// The answer to a question that was asked before this module was there; it can be read once.
globalThis.early ??= new Map();
function taken(path) {
  const answer = globalThis.early.get(path);
  globalThis.early.delete(path);
  return answer;
}

let locked = () => {};
export function onLocked(act) {
  locked = act;
}

async function answer(response) {
  const type = response.headers.get("content-type") ?? "";
  const said = type.includes("json") ? await response.json() : { error: (await response.text()).trim() };
  if (!response.ok) throw new Error(said.error || response.statusText);
  return said;
}

export async function begin() {
  const name = /^#\/sweep\/([\w.-]+)(?:\/|$)/.exec(location.hash)?.[1];
  const first = name && await table(name).catch(() => null); // brings the overview; who needs it says what is wrong
  known.overview ??= await get("overview", name ? { sweep: name } : {});
  listen(Math.min(known.overview.version, first?.version ?? Infinity));
}

// The rows of a sweep, read when it is first looked at.
export async function table(name) {
  if (known.tables.has(name)) return known.tables.get(name);
  if (!asked.has(name)) asked.set(name, read(name).finally(() => asked.delete(name)));
  return asked.get(name);
}

// The first rows come at once, and are shown; the others follow.
async function read(name) {
  coming.set(name, []);
  const parts = lines(await ask(`table?${new URLSearchParams({ sweep: name })}`));
  const first = (await parts.next()).value;
  if (!first) throw new Error("the dashboard has stopped: start it again with hostler ui");
  const made = { ...rowsOf(first), columns: new Columns(), version: first.version, total: first.total, whole: first.last };
  made.columns.add(first, made.rows);
  known.tables.set(name, made);
  known.overview ??= first.overview;
  const late = coming.get(name) ?? []; // what changed while it was on its way
  coming.delete(name);
  merge(late);
  if (!made.whole) drawn().then(() => rest(name, made, parts));
  return made;
}

// The first rows are on the screen: what follows would keep them from it. Where nothing is drawn, as in the background, time passes.
async function drawn() {
  const frame = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 100); });
  while (!known.overview) await frame();
  await frame();
  await frame();
}

// A row that is there already came with a change, and is newer.
async function rest(name, made, parts) {
  try {
    for await (const part of parts) {
      const more = rowsOf(part);
      made.columns.add(part, more.rows);
      add(made, more.rows.filter((row) => !made.byId.has(row.id)));
      made.whole = part.last;
      tell(new Set(more.byId.keys()), part.last);
    }
  } catch { /* the connection is gone */ }
  if (!made.whole) setTimeout(() => again(name), 2000);
}

function add(table, rows) {
  const sorted = !table.rows.length || !rows.length || table.rows.at(-1).index < rows[0].index;
  for (const row of rows) {
    table.byId.set(row.id, row);
    table.rows.push(row);
  }
  if (!sorted) table.rows.sort((a, b) => a.index - b.index);
}

async function* lines(response) {
  for await (const line of texts(response)) yield JSON.parse(line);
}

async function* texts(response) {
  if (!response.ok) await answer(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
}

// Reads a table again in which many rows have changed; one reading at a time, and one more if it was asked for meanwhile.
const reading = new Map();
async function again(name) {
  if (!known.tables.has(name)) { asked.get(name)?.then(() => again(name), () => {}); return; }
  if (reading.has(name)) { reading.set(name, true); return; }
  reading.set(name, false);
  await new Promise((done) => setTimeout(done, 300)); // many changes in a row are one
  try {
    const fresh = rowsOf(await get("runs", { sweep: name }));
    merge(fresh.rows);
    known.tables.get(name).whole = true;
    tell(new Set(fresh.byId.keys()));
  } catch {
    setTimeout(() => again(name), 2000); // the server is away, or the sweep
  } finally {
    const more = reading.get(name);
    reading.delete(name);
    if (more) again(name);
  }
}

// `now`: it is worth drawing at once.
function tell(ids, now = false) {
  for (const listener of [...listeners]) listener(ids, now);
}

// The stream of changes: read by fetch, since an EventSource sends no header.
async function listen(since) {
  try {
    const response = await ask(`events?since=${since}`);
    if (response.ok) setLive(true);
    for await (const line of texts(response)) {
      setLive(true);
      if (line.startsWith("data: ")) change(JSON.parse(line.slice(6)));
    }
  } catch (error) {
    if (error instanceof Locked) { setLive(false); return; }
  }
  setLive(false);
  setTimeout(() => listen(known.overview.version), 1000);
}

function change({ rows, again: names, ...overview }) {
  if (overview.born !== known.overview.born) { location.reload(); return; }
  const there = new Set(overview.sweeps.map((one) => one.name));
  for (const name of known.tables.keys()) if (!there.has(name)) known.tables.delete(name);
  known.overview = overview;
  merge(rows);
  tell(new Set(rows.map((row) => row.id)));
  for (const name of names) again(name);
}

function merge(rows) {
  const grown = new Map();
  for (const row of rows) {
    coming.get(row.sweep)?.push(row);
    const table = known.tables.get(row.sweep);
    if (!table) continue;
    const old = table.byId.get(row.id);
    if (old) table.columns.change(Object.assign(old, row, { home: old.home, place: old.place }));
    else {
      if (!grown.has(table)) grown.set(table, new Map());
      grown.get(table).set(row.id, row);
    }
  }
  for (const [table, rows] of grown) {
    for (const row of rows.values()) table.columns.change(row);
    add(table, [...rows.values()]);
  }
}

function setLive(on) {
  known.live = on;
  const sign = document.getElementById("live");
  const word = on ? "live" : "reconnecting";
  if (sign.textContent !== word) sign.textContent = word;
  sign.classList.toggle("on", on);
}
