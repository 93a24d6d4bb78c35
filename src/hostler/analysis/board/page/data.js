// What the page knows of the store: fetched once, then kept up to date by the stream of changes.

const csrf = document.querySelector("meta[name=csrf]").content;
const listeners = new Set();
export const known = { overview: null, tables: new Map(), live: false };

export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export async function get(path, query = {}) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) for (const one of [value].flat()) words.append(name, one);
  return answer(await fetch(`/api/${path}?${words}`, { credentials: "same-origin" }));
}

export async function post(path, body) {
  const headers = { "Content-Type": "application/json", "X-Hostler-Csrf": csrf };
  return answer(await fetch(`/api/${path}`, { method: "POST", credentials: "same-origin", headers, body: JSON.stringify(body) }));
}

async function answer(response) {
  const type = response.headers.get("content-type") ?? "";
  const said = type.includes("json") ? await response.json() : { error: (await response.text()).trim() };
  if (!response.ok) throw new Error(said.error || response.statusText);
  return said;
}

export async function begin() {
  known.overview = await get("overview");
  listen(known.overview.version);
}

// The rows of a sweep, read when it is first looked at.
export async function table(name) {
  if (!known.tables.has(name)) known.tables.set(name, rowsOf(await get("runs", { sweep: name })));
  return known.tables.get(name);
}

function rowsOf(columns) {
  const rows = [], byId = new Map();
  const [fields, params, metrics] = [columns.fields, columns.params, columns.metrics].map(Object.entries);
  for (let i = 0; i < columns.count; i++) {
    const row = { params: {}, metrics: {} };
    for (const [name, cells] of fields) row[name] = cells[i];
    for (const [name, cells] of params) if (cells[i] !== null) row.params[name] = cells[i];
    for (const [name, cells] of metrics) if (cells[i] !== null) row.metrics[name] = cells[i];
    rows.push(row);
    byId.set(row.id, row);
  }
  return { rows, byId };
}

function listen(since) {
  const source = new EventSource(`/api/events?since=${since}`);
  source.onopen = () => setLive(true);
  source.onerror = () => {
    setLive(false);
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => listen(known.overview.version), 2000);
  };
  source.onmessage = (event) => {
    setLive(true);
    const { rows, ...overview } = JSON.parse(event.data);
    if (overview.born !== known.overview.born) { location.reload(); return; }
    const there = new Set(overview.sweeps.map((one) => one.name));
    for (const name of known.tables.keys()) if (!there.has(name)) known.tables.delete(name);
    known.overview = overview;
    for (const row of rows) merge(row);
    for (const listener of [...listeners]) listener(new Set(rows.map((row) => row.id)));
  };
}

function merge(row) {
  const table = known.tables.get(row.sweep);
  if (!table) return;
  const old = table.byId.get(row.id);
  if (old) {
    delete old.words;
    Object.assign(old, row);
  } else {
    table.byId.set(row.id, row);
    table.rows.push(row);
    table.rows.sort((a, b) => a.index - b.index);
  }
}

function setLive(on) {
  known.live = on;
  const sign = document.getElementById("live");
  const word = on ? "live" : "reconnecting";
  if (sign.textContent !== word) sign.textContent = word;
  sign.classList.toggle("on", on);
}
