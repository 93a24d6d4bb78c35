"use strict";
// The table of all runs: filtered as one types, sorted by a column, drawn a few hundred rows at a time.
(function () {
  const { columns, rows } = JSON.parse(document.getElementById("stored").textContent).data;
  const table = document.getElementById("runs"), filter = document.getElementById("filter"), count = document.getElementById("count");
  const box = table.parentElement;
  const words = rows.map((row) => row.map((v) => (v === null ? "" : typeof v === "object" ? JSON.stringify(v) : String(v))).join("\u0000").toLowerCase());
  let order = null, down = false, shown = [], drawn = 0;

  function cell(tag, text, num) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (num) made.className = "num";
    return made;
  }
  function word(v) {
    if (v === null || v === undefined) return "";
    if (typeof v === "number") return Number.isInteger(v) ? String(v) : String(Number(v.toPrecision(6)));
    return typeof v === "object" ? JSON.stringify(v) : String(v);
  }
  const numeric = columns.map((_, n) => rows.some((row) => typeof row[n] === "number"));
  const head = table.createTHead().insertRow();
  columns.forEach(function (name, n) {
    const th = cell("th", "", numeric[n]), button = document.createElement("button");
    th.scope = "col";
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", function () {
      down = order === n ? !down : numeric[n];
      order = n;
      for (const one of head.cells) one.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", down ? "descending" : "ascending");
      draw();
    });
    th.append(button);
    head.append(th);
  });
  const body = table.createTBody();

  function rank(v) { return v === null || v === undefined ? 3 : typeof v === "number" || v === "Infinity" || v === "-Infinity" ? 0 : v === "NaN" ? 1 : 2; }
  function compare(a, b) {
    const x = rows[a][order], y = rows[b][order], rx = rank(x), ry = rank(y);
    if (rx !== ry) return rx - ry;
    const by = rx === 0 ? Number(x) - Number(y) : String(x).localeCompare(String(y), "en", { numeric: true });
    return down ? -by : by;
  }
  function more() {
    const end = Math.min(shown.length, drawn + 200);
    for (; drawn < end; drawn++) {
      const line = body.insertRow();
      rows[shown[drawn]].forEach((v, n) => line.append(cell("td", word(v), numeric[n])));
    }
  }
  function draw() {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = [];
    words.forEach((text, n) => { if (wanted.every((one) => text.includes(one))) shown.push(n); });
    if (order !== null) shown.sort(compare);
    body.replaceChildren();
    drawn = 0;
    count.textContent = shown.length.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " runs";
    more();
  }
  filter.addEventListener("input", draw);
  box.addEventListener("scroll", function () { if (box.scrollTop + box.clientHeight > box.scrollHeight - 600) more(); });
  draw();
})();
