// A table of any length: only the rows in sight are elements. Arrow keys move, Space selects, Enter opens.

import { h } from "./dom.js";
import { compare } from "./filter.js";

const HEIGHT = 34, SPARE = 6;

export class Grid {
  // columns: [{key, title, width, num, value(row), fill(cell, row)}]
  constructor({ label, columns, open, selected, changed }) {
    Object.assign(this, { columns, open, selected, changed });
    this.all = []; this.rows = []; this.sort = null; this.active = 0; this.test = () => true; this.anchor = 0;
    this.head = h("div", { class: "row headrow", role: "row" });
    this.body = h("div", { class: "body", role: "rowgroup" });
    this.element = h("div", {
      class: "grid card", role: "grid", tabindex: 0, "aria-label": label, "aria-multiselectable": "true",
      onscroll: () => this.draw(), onkeydown: (event) => this.key(event),
    }, h("div", { role: "rowgroup" }, this.head), this.body);
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.setColumns(columns);
  }

  setColumns(columns) {
    this.columns = columns;
    this.element.style.setProperty("--columns", ["2.6rem", ...columns.map((c) => c.width)].join(" "));
    this.element.setAttribute("aria-colcount", columns.length + 1);
    this.head.replaceChildren(
      h("div", { role: "columnheader", class: "cell" }, h("span", { class: "sr" }, "Selected")),
      ...columns.map((column) => h("div", { role: "columnheader", class: column.num ? "cell num" : "cell", "aria-sort": "none" },
        h("button", { type: "button", title: column.title, onclick: () => this.sortBy(column) }, column.title))));
    this.body.replaceChildren();
    this.mark();
    this.draw();
  }

  setRows(rows) { this.all = rows; this.apply(); }

  setFilter(test) { this.test = test; this.element.scrollTop = 0; this.active = 0; this.apply(); }

  sortBy(column) {
    const same = this.sort?.key === column.key;
    this.sort = same && this.sort.down !== column.num ? null : { key: column.key, down: same ? !this.sort.down : !!column.num };
    if (this.sort) this.sort.value = column.value;
    this.mark();
    this.apply();
  }

  mark() {
    [...this.head.children].slice(1).forEach((cell, n) => {
      const on = this.sort?.key === this.columns[n].key;
      cell.setAttribute("aria-sort", on ? (this.sort.down ? "descending" : "ascending") : "none");
      cell.firstChild.textContent = this.columns[n].title + (on ? (this.sort.down ? " ↓" : " ↑") : "");
    });
  }

  apply() {
    this.rows = this.all.filter((row) => !row.trashed && this.test(row));
    if (this.sort) {
      const { value, down } = this.sort;
      const keyed = this.rows.map((row) => [value(row), row]);
      keyed.sort((a, b) => compare(a[0], b[0], down));
      this.rows = keyed.map(([, row]) => row);
    }
    this.active = Math.max(0, Math.min(this.active, this.rows.length - 1));
    this.element.setAttribute("aria-rowcount", this.rows.length + 1);
    this.draw();
    this.changed?.();
  }

  draw() {
    this.body.style.height = `${this.rows.length * HEIGHT}px`;
    const first = Math.max(0, Math.floor(this.element.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(this.rows.length, first + Math.ceil((this.element.clientHeight || 600) / HEIGHT) + 2 * SPARE);
    while (this.body.children.length > last - first) this.body.lastChild.remove();
    while (this.body.children.length < last - first) this.body.append(this.blank());
    for (let n = first; n < last; n++) this.fill(this.body.children[n - first], n);
    const active = this.body.children[this.active - first];
    if (active) this.element.setAttribute("aria-activedescendant", active.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  blank() {
    const cells = this.columns.map((c) => h("div", { role: "gridcell", class: c.num ? "cell num" : "cell" }));
    return h("div", { class: "row", role: "row" }, h("div", { role: "gridcell", class: "tick", "aria-label": "select" }), cells);
  }

  fill(element, n) {
    const row = this.rows[n];
    element.id = `row-${n}`;
    element.dataset.n = n;
    element.style.top = `${n * HEIGHT}px`;
    element.setAttribute("aria-rowindex", n + 2);
    element.setAttribute("aria-selected", this.selected.has(row.id));
    element.classList.toggle("active", n === this.active && document.activeElement === this.element);
    this.columns.forEach((column, c) => {
      const cell = element.children[c + 1];
      if (column.fill) { column.fill(cell, row); return; }
      const text = column.text(row);
      if (cell.textContent !== text) { cell.textContent = text; cell.title = text; }
    });
  }

  click(event) {
    const element = event.target.closest(".row");
    if (!element || event.target.closest("a")) return;
    const n = Number(element.dataset.n);
    this.active = n;
    if (event.shiftKey) this.select(Math.min(n, this.anchor), Math.max(n, this.anchor), true);
    else this.select(n, n, !this.selected.has(this.rows[n].id));
    this.anchor = n;
  }

  select(from, to, on) {
    for (let n = from; n <= to; n++) on ? this.selected.add(this.rows[n].id) : this.selected.delete(this.rows[n].id);
    this.draw();
    this.changed?.();
  }

  key(event) {
    if (event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / HEIGHT) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined) this.go(Math.max(0, Math.min(this.rows.length - 1, this.active + step)));
    else if (event.key === " " && this.rows.length) this.select(this.active, this.active, !this.selected.has(this.rows[this.active].id));
    else if (event.key === "Enter" && this.rows.length) this.open(this.rows[this.active]);
    else return;
    event.preventDefault();
  }

  go(n) {
    this.active = n;
    const [top, height] = [n * HEIGHT, this.element.clientHeight - 44];
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + HEIGHT > this.element.scrollTop + height) this.element.scrollTop = top + HEIGHT - height;
    this.draw();
  }
}
