// A table of any length and width: only rows and columns in sight are elements. Arrow keys or j and k move, Space or x selects, Enter opens.

import { tail } from "./decimals.js";
import { h } from "./dom.js";
import { ordered } from "./filter.js";
import { full, isOdd } from "./words.js";

const HEIGHT = 34, SPARE = 4, TICK = 40, NARROW = 48, PRINTED = 1000, AROUND = 262; // of a window's height, what is not the table's
const PINNED = 0.62; // of the width that pinned columns may take
const BESIDE = 60; // pixels beside what is in sight, of which columns are elements, too
const paper = matchMedia("print");

export class Grid {
  // columns: [{key, title, width, num, pinned, value(row), text(row), fill(cell, row)}], widths in pixels.
  // `resized(column)` hears of a width that a person has chosen.
  constructor({ label, columns, open, selected, changed, resized }) {
    Object.assign(this, { columns, open, selected, changed, resized });
    this.all = []; this.rows = []; this.sort = null; this.active = 0; this.test = () => true; this.anchor = 0;
    this.idle = this.ordered = null; // all rows as they are sorted, until the rows or the sort change
    this.above = this.before = this.wide = this.tall = 0; // pixels scrolled away, and the size, as last heard: to ask would lay the page out
    this.drawn = []; // columns that are elements
    this.head = h("div", { class: "row headrow", role: "row" });
    this.body = h("div", { class: "body", role: "rowgroup" });
    this.element = h("div", {
      class: "grid card", role: "grid", tabindex: 0, "aria-label": label, "aria-multiselectable": "true",
      onscroll: () => this.scrolled(), onkeydown: (event) => this.key(event), onfocus: () => this.draw(), onblur: () => this.draw(),
    }, h("div", { role: "rowgroup" }, this.head), this.body);
    this.body.addEventListener("click", (event) => this.click(event));
    this.body.addEventListener("pointerover", (event) => this.tell(event.target.closest(".cell")));
    new ResizeObserver(() => this.sized()).observe(this.element);
    const printed = () => (this.element.isConnected ? this.draw() : paper.removeEventListener("change", printed));
    paper.addEventListener("change", printed);
    this.setColumns(columns);
  }

  sized() {
    const { clientWidth, clientHeight } = this.element;
    if (clientWidth === this.wide && clientHeight === this.tall) return;
    if (clientWidth !== this.wide) { this.wide = clientWidth; this.arrange(); }
    this.tall = clientHeight;
    this.drawFirst();
  }

  scrolled() {
    this.above = this.element.scrollTop;
    this.before = this.element.scrollLeft;
    this.draw();
  }

  setColumns(columns) {
    this.columns = columns;
    this.ordered = null;
    this.drawn = [];
    this.measure();
    this.element.setAttribute("aria-colcount", columns.length + 1);
    this.head.replaceChildren(
      h("div", { role: "columnheader", class: "cell tick pin" }, h("span", { class: "sr" }, "Selected")),
      ...columns.map((column) => this.title(column)));
    columns.forEach((column, n) => { column.n = n; column.widest = 0; });
    this.mark();
    this.draw();
  }

  title(column) {
    const cell = h("div", { role: "columnheader", class: this.look(column), "aria-sort": "none" },
      h("button", { type: "button", title: column.title, onclick: () => this.sortBy(column), onkeydown: (event) => {
        const step = event.shiftKey ? { ArrowLeft: -16, ArrowRight: 16 }[event.key] : 0;
        if (step) { event.preventDefault(); this.resize(column, column.width + step); }
      } }, column.title),
      h("span", { class: "handle", "aria-hidden": "true", onpointerdown: (event) => this.drag(event, column) }));
    if (column.pinned) cell.style.left = `${column.left}px`;
    return cell;
  }

  look(column) {
    return `cell${column.num ? " num" : ""}${column.pinned ? " pin" : ""}${column.pinned && column.last ? " edge" : ""}`;
  }

  // Where each column stands: pinned ones stay at the left while the others pass under them, for which they leave room.
  measure() {
    let left = TICK, at = TICK;
    const pinned = this.columns.filter((column) => column.pinned), sum = pinned.reduce((all, column) => all + column.width, 0);
    const share = Math.min(1, Math.max(NARROW, (this.wide || Infinity) * PINNED - TICK) / sum);
    for (const column of this.columns) {
      column.left = left;
      column.last = column === pinned.at(-1);
      column.shown = column.pinned ? Math.round(column.width * share) : column.width;
      column.at = at;
      at += column.shown;
      if (column.pinned) left += column.shown;
    }
    this.pins = left; // pixels that stay in sight
    this.element.style.setProperty("--columns", [`${TICK}px`, ...this.columns.map((c) => `${c.shown}px`), "1fr"].join(" "));
    this.element.style.setProperty("--wide", `${at}px`); // said, it need not be found out for each row
    this.element.style.setProperty("--on-paper", ["0", ...this.columns.map((c) => `minmax(0, ${c.width}fr)`)].join(" "));
  }

  resize(column, width) {
    column.width = Math.max(NARROW, Math.min(800, Math.round(width)));
    this.arrange();
    this.resized?.(column);
  }

  // Measures again, and moves what is there already.
  arrange() {
    this.measure();
    if (this.drawn.length) this.pattern = this.emptyRow();
    for (const element of [this.head, ...this.body.children]) this.columns.forEach((one, n) => { if (one.pinned) element.children[n + 1].style.left = `${one.left}px`; });
  }

  drag(event, column) {
    event.preventDefault();
    const handle = event.target, from = event.clientX, width = column.width;
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (moved) => this.resize(column, width + moved.clientX - from);
    handle.onpointerup = () => { handle.onpointermove = handle.onpointerup = null; };
  }

  setRows(rows) { this.all = rows; this.ordered = null; this.apply(); }

  setFilter(test) { this.test = test; if (this.above) this.above = this.element.scrollTop = 0; this.active = 0; this.apply(); }

  sortBy(column) {
    const same = this.sort?.key === column.key;
    this.sort = same && this.sort.down !== column.num ? null : { key: column.key, down: same ? !this.sort.down : !!column.num };
    this.ordered = null;
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

  order() {
    const column = this.sort && this.columns.find((one) => one.key === this.sort.key);
    if (!column) return this.all;
    return ordered(this.all, column.value, this.sort.down);
  }

  apply() {
    this.ordered ??= this.order().filter((row) => !row.trashed);
    if (this.there !== this.ordered.length) {
      this.there = this.ordered.length; // those that no filter hides
      this.element.style.setProperty("--there", Math.max(1, this.there));
    }
    this.rows = this.ordered.filter(this.test);
    this.active = Math.max(0, Math.min(this.active, this.rows.length - 1));
    this.element.setAttribute("aria-rowcount", this.rows.length + 1);
    this.drawFirst();
    this.changed?.();
  }

  // What is out of sight can wait.
  drawFirst() {
    this.draw(0);
    this.idle ??= requestIdleCallback(() => { this.idle = null; this.draw(); }, { timeout: 200 });
  }

  // Chooses columns anew where one that is in sight is no element; on paper all are.
  choose() {
    const from = this.before + this.pins, to = this.before + (this.wide || innerWidth);
    const within = (more) => this.columns.filter((one) => paper.matches || one.pinned || (one.at + one.shown > from - more && one.at < to + more));
    const needed = within(0);
    if (this.drawn.length && needed.every((one) => this.drawn.includes(one))) return;
    this.drawn = within(BESIDE);
    this.pattern = this.emptyRow();
    this.body.replaceChildren();
  }

  // Rows in sight, and `spare` ones above and below, for who scrolls.
  draw(spare = SPARE) {
    this.choose();
    const tall = this.tall || Math.max(320, innerHeight - AROUND);
    const above = Math.max(0, Math.min(this.above, this.rows.length * HEIGHT - tall));
    this.body.style.height = `${this.rows.length * HEIGHT}px`;
    const first = paper.matches ? 0 : Math.max(0, Math.floor(above / HEIGHT) - spare);
    const last = Math.min(this.rows.length, paper.matches ? PRINTED : Math.ceil((above + tall) / HEIGHT) + spare);
    while (this.body.children.length > last - first) this.body.lastChild.remove();
    while (this.body.children.length < last - first) this.body.append(this.blank());
    this.focused = document.activeElement === this.element;
    for (let n = first; n < last; n++) this.fill(this.body.children[n - first], n);
    const active = this.body.children[this.active - first];
    if (active) this.element.setAttribute("aria-activedescendant", active.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  // An empty row: made once, then copied.
  blank() {
    const made = this.pattern.cloneNode(true);
    made.cells = [...made.children].slice(1);
    return made;
  }

  emptyRow() {
    const cells = this.drawn.map((column) => {
      const made = h("div", { role: "gridcell", class: this.look(column), "aria-colindex": column.n + 2 });
      made.style.gridColumn = column.n + 2;
      if (column.pinned) made.style.left = `${column.left}px`;
      if (column.num) made.append(document.createTextNode(""));
      return made;
    });
    return h("div", { class: "row", role: "row" }, h("div", { role: "gridcell", class: "cell tick pin", "aria-label": "select", "aria-colindex": 1 }, h("span", { class: "box" })), cells);
  }

  fill(element, n) {
    const row = this.rows[n];
    if (element.n !== n) {
      element.n = n;
      element.id = `row-${n}`;
      element.style.top = `${n * HEIGHT}px`;
      element.setAttribute("aria-rowindex", n + 2);
    }
    const selected = this.selected.has(row.id), active = n === this.active && this.focused;
    if (element.selected !== selected) element.setAttribute("aria-selected", element.selected = selected);
    if (element.active !== active) element.classList.toggle("active", element.active = active);
    for (let c = 0; c < this.drawn.length; c++) {
      const column = this.drawn[c], cell = element.cells[c];
      if (column.fill) column.fill(cell, row);
      else if (column.num) this.figure(column, cell, row);
      else {
        const text = column.text(row);
        if (cell.shown !== text) cell.textContent = cell.shown = text;
      }
    }
  }

  // The whole of what a cell shows, for who points at it: to say it of all cells would take as long as to draw them.
  tell(cell) {
    const element = cell?.parentNode, column = this.drawn[element?.cells?.indexOf(cell)], row = this.rows[element?.n];
    if (!column || !row) return;
    const words = column.hover ? column.hover(row) : column.num ? full(column.value(row)) : column.text(row);
    if (cell.title !== words) cell.title = words;
  }

  // A number with room after it, so that decimal points stand under each other.
  figure(column, cell, row) {
    const text = column.text(row);
    if (cell.shown === text) return;
    cell.shown = cell.firstChild.data = text;
    const odd = isOdd(text), [wide, most] = odd ? [null, 0] : tail(text);
    if (odd !== !!cell.odd) cell.classList.toggle("odd", cell.odd = odd);
    if (cell.tail !== wide) cell.style.paddingRight = (cell.tail = wide) === null ? "" : `calc(var(--f${column.n}, var(--pad)) - ${wide}em)`;
    if (most > column.widest) {
      column.widest = most;
      this.element.style.setProperty(`--f${column.n}`, `calc(var(--pad) + ${most}em)`);
    }
  }

  click(event) {
    const element = event.target.closest(".row");
    if (!element || event.target.closest("a")) return;
    const { n } = element;
    this.active = n;
    if (event.shiftKey) this.select(Math.min(n, this.anchor), Math.max(n, this.anchor), true);
    else this.toggle(n);
    this.anchor = n;
  }

  toggle(n = this.active) {
    if (this.rows[n]) this.select(n, n, !this.selected.has(this.rows[n].id));
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
    if (step !== undefined) this.move(step);
    else if (event.key === " ") this.toggle();
    else if (event.key === "Enter" && this.rows.length) this.open(this.rows[this.active]);
    else return;
    event.preventDefault();
  }

  move(step) {
    this.active = Math.max(0, Math.min(this.rows.length - 1, this.active + step));
    const [top, height] = [this.active * HEIGHT, this.element.clientHeight - 44];
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + HEIGHT > this.element.scrollTop + height) this.element.scrollTop = top + HEIGHT - height;
    this.scrolled();
  }
}
