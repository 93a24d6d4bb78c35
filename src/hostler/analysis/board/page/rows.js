// Rows of a table as they come from the server, by column; and the numbers of a column together, for whoever looks at all rows at once.

const at = (cells, i) => (cells === undefined ? null : cells.each ? cells.each[i] : cells.all);

// Every field by its name: rows of one form are found their way around in quicker than records of any form.
class Row {
  constructor(f, i) {
    this.home = null; this.place = 0; // the Columns of its table, and its place in them
    this.id = at(f.id, i); this.name = at(f.name, i); this.sweep = at(f.sweep, i); this.index = at(f.index, i);
    this.state = at(f.state, i); this.step = at(f.step, i); this.attempt = at(f.attempt, i); this.host = at(f.host, i);
    this.started = at(f.started, i); this.seconds = at(f.seconds, i); this.earlier = at(f.earlier, i); this.began = at(f.began, i);
    this.cost = at(f.cost, i); this.tags = at(f.tags, i); this.stop = at(f.stop, i); this.stale = at(f.stale, i); this.lost = at(f.lost, i);
    this.section = at(f.section, i); this.copy_of = at(f.copy_of, i); this.trashed = at(f.trashed, i); this.paused_by = at(f.paused_by, i);
    this.rung = at(f.rung, i); this.by_hand = at(f.by_hand, i); this.exit = at(f.exit, i); this.why = at(f.why, i);
    this.failure = at(f.failure, i); this.ranked = at(f.ranked, i); this.value = at(f.value, i);
    this.params = Object.create(null); this.metrics = Object.create(null); // any name may be one of theirs
  }
}

// {rows, byId} of columns like {fields: {name: {each: [...]}, state: {all: "done"}}, params, metrics, count}.
export function rowsOf(columns) {
  const rows = [], byId = new Map();
  const [params, metrics] = [columns.params, columns.metrics].map(Object.entries);
  for (let i = 0; i < columns.count; i++) {
    const row = new Row(columns.fields, i);
    for (const [name, cells] of params) put(row.params, name, at(cells, i));
    for (const [name, cells] of metrics) put(row.metrics, name, at(cells, i));
    rows.push(row);
    byId.set(row.id, row);
  }
  return { rows, byId };
}

function put(record, name, value) {
  if (value !== null) record[name] = value;
}

export const asNumber = (v) => (typeof v === "number" ? v : typeof v === "string" && v !== "" ? Number(v) : NaN);

export class Columns {
  constructor() {
    this.parts = []; // [first place, columns]
    this.newer = new Set(); // rows that have changed since they came, or came alone
    this.count = this.version = 0;
    this.made = new Map(); // key → its numbers
  }

  // A part of the table; `rows` are those it has become.
  add(columns, rows) {
    this.parts.push([this.count, columns]);
    rows.forEach((row, i) => { row.home = this; row.place = this.count + i; this.newer.delete(row); });
    this.count += columns.count;
    this.forget();
  }

  change(row) {
    if (row.home !== this) { row.home = this; row.place = this.count++; }
    this.newer.add(row);
    this.forget();
  }

  forget() {
    this.version++;
    this.made.clear();
  }

  // Numbers by place, NaN where there is none: of a parameter, else a metric, else a fact, as `of` finds it in a row.
  numbers(key, of) {
    if (!this.made.has(key)) this.made.set(key, this.collect(key, of));
    return this.made.get(key);
  }

  collect(key, of) {
    const found = new Float64Array(this.count).fill(NaN);
    const [, group, name] = /^(?:(param|metric)\.)?(.*)$/s.exec(key);
    for (const [start, columns] of this.parts) {
      const sources = [!group || group === "param" ? columns.params : {}, !group || group === "metric" ? columns.metrics : {}, group ? {} : columns.fields];
      const named = sources.filter((one) => Object.hasOwn(one, name)).map((one) => one[name]);
      for (let i = 0; named.length && i < columns.count; i++) {
        let value = at(named[0], i);
        for (let n = 1; (value === null || value === undefined) && n < named.length; n++) value = at(named[n], i);
        found[start + i] = asNumber(value);
      }
    }
    for (const row of this.newer) found[row.place] = asNumber(of(row));
    return found;
  }
}
