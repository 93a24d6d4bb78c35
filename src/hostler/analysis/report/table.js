"use strict";
// The table of all runs: the best first, filtered as one types, sorted by a column, drawn a few hundred rows at
// a time. Numbers by the rule of the terminal, their points under each other, the full value on hover.
(function () {
  const { columns, kinds, rows, best, by } = JSON.parse(document.getElementById("stored").textContent).data;
  const table = document.getElementById("runs"), filter = document.getElementById("filter"), count = document.getElementById("count");
  const box = table.parentElement;
  const words = rows.map((row) => row.map((v) => (v === null ? "" : typeof v === "object" ? JSON.stringify(v) : String(v))).join("\u0000").toLowerCase());
  const SHORT = 9, LONG = 24; // letters of a word that paper does not break; of a name that needs room there
  let order = by ? by.column : null, down = by ? by.down : false, shown = [], drawn = 0;

  function cell(tag, text, num) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (num) made.className = "num";
    return made;
  }
  function trimmed(digits) { return digits.includes(".") ? digits.replace(/0+$/, "").replace(/\.$/, "") : digits; }
  function number(v) {
    if (Number.isInteger(v) && Math.abs(v) < 1e9) return String(v);
    const [digits, power] = v.toExponential(3).split("e");
    if (power < -2 || power >= 6) return trimmed(digits) + "e" + Number(power);
    return trimmed(v.toFixed(Math.max(0, 3 - power)));
  }
  function duration(v) {
    if (v < 10) return v >= 1 || v === 0 ? Math.floor(v * 10) / 10 + "s" : Math.floor(v * 1000) + "ms";
    const s = Math.floor(v), two = (n) => String(n).padStart(2, "0");
    if (s < 60) return s + "s";
    if (s < 3600) return Math.floor(s / 60) + "m " + two(s % 60) + "s";
    if (s < 86400) return Math.floor(s / 3600) + "h " + two(Math.floor((s % 3600) / 60)) + "m";
    return Math.floor(s / 86400) + "d " + two(Math.floor((s % 86400) / 3600)) + "h";
  }
  function ago(s) {
    const [n, unit] = s < 60 ? [s, "s"] : s < 3600 ? [s / 60, "m"] : s < 86400 ? [s / 3600, "h"] : [s / 86400, "d"];
    return s < 1 ? "just now" : Math.floor(n) + unit + " ago";
  }
  function word(v, kind) {
    if (v === null || v === undefined) return "";
    if (typeof v === "number") return kind === "time" ? duration(v) : kind === "cost" ? v.toFixed(2) : number(v);
    return typeof v === "object" ? JSON.stringify(v) : String(v);
  }
  window.hostlerNumbers = { number, duration };
  for (const one of document.querySelectorAll("time[data-at]")) one.textContent = ago(Date.now() / 1000 - one.dataset.at);
  const numeric = columns.map((_, n) => rows.some((row) => typeof row[n] === "number"));
  const parts = columns.map(function (_, n) { // letters after the point, of the longest number of each column
    if (!numeric[n] || kinds[n] === "time") return 0;
    return Math.max(...rows.map((row) => (typeof row[n] === "number" ? split(word(row[n], kinds[n]))[1].length : 0)));
  });
  function split(text) {
    const at = text.search(/[.e]/);
    return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at)];
  }
  const head = table.createTHead().insertRow();
  columns.forEach(function (name, n) {
    const th = cell("th", "", numeric[n]), button = document.createElement("button");
    if (n === order) th.setAttribute("aria-sort", down ? "descending" : "ascending");
    th.scope = "col";
    if (name.length <= SHORT) th.classList.add("short");
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
  table.classList.toggle("long", rows.some((row) => row[0].length > LONG));

  function rank(v) { return v === null || v === undefined ? 3 : typeof v === "number" || v === "Infinity" || v === "-Infinity" ? 0 : v === "NaN" ? 1 : 2; }
  function compare(a, b) {
    const x = rows[a][order], y = rows[b][order], rx = rank(x), ry = rank(y);
    if (rx !== ry) return rx - ry;
    const by = rx === 0 ? Number(x) - Number(y) : String(x).localeCompare(String(y), "en", { numeric: true });
    return down ? -by : by;
  }
  function filled(v, n) {
    const text = word(v, kinds[n]), made = cell("td", text, numeric[n]);
    if (typeof v === "number" && text !== String(v)) made.title = String(v) + (kinds[n] === "time" ? " s" : "");
    else if (text.length > 30) made.title = text;
    if (v === "NaN") made.classList.add("bad");
    if (text.length <= SHORT) made.classList.add("short");
    if (!parts[n] || typeof v !== "number") return made;
    const [whole, rest] = split(text), tail = cell("span", rest);
    tail.className = "part";
    tail.style.width = parts[n] + "ch";
    made.replaceChildren(whole, tail);
    return made;
  }
  function more(all) {
    const end = all === true ? shown.length : Math.min(shown.length, drawn + 200);
    for (; drawn < end; drawn++) {
      const line = body.insertRow(), row = rows[shown[drawn]];
      row.forEach((v, n) => line.append(filled(v, n)));
      if (row[0] === best) {
        line.className = "best";
        line.cells[0].append(Object.assign(cell("span", " ★"), { className: "star", title: "the best run" }));
      }
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
  addEventListener("beforeprint", () => more(true));
  box.addEventListener("scroll", function () { if (box.scrollTop + box.clientHeight > box.scrollHeight - 600) more(); });
  draw();
})();
