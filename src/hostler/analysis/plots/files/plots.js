"use strict";
// Draws the stored figures in the colours and the width of the page; again when these change, and for paper.
(function () {
  const stored = JSON.parse(document.getElementById("stored").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)"), narrow = matchMedia("(max-width: 640px)"), print = matchMedia("print");
  const places = stored.figures.map((_, n) => document.getElementById("plot-" + n));

  function luminance([r, g, b]) {
    const [x, y, z] = [r, g, b].map((v) => (v <= 10.31 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  }
  const ground = luminance([0x1b, 0x20, 0x23]);
  // A colour with as much white as it needs to stand out from a dark page; on_dark.py does the same for pictures.
  function legible(text) {
    if (typeof text !== "string" || !/^#[0-9a-f]{6}$/i.test(text)) return text;
    const parts = [1, 3, 5].map((n) => parseInt(text.slice(n, n + 2), 16));
    for (let white = 0; white < 1; white += 0.05) {
      const mixed = parts.map((v) => Math.round(v + (255 - v) * white));
      if ((luminance(mixed) + 0.05) / (ground + 0.05) >= 4.5) return `rgb(${mixed})`;
    }
    return "#fff";
  }
  function lit(trace, overHeat) {
    const made = { ...trace };
    if (made.opacity < 0.5) made.opacity *= 0.6; // faint lines stay behind
    if (made.line && made.line.color) made.line = { ...made.line, color: legible(made.line.color) };
    if (made.marker && !overHeat) {
      made.marker = { ...made.marker, color: legible(made.marker.color) };
      if (made.marker.colorscale) made.marker.colorscale = made.marker.colorscale.map(([at, colour]) => [at, legible(colour)]);
    }
    return made;
  }
  function traces(figure) {
    if (!dark.matches || printed) return figure.data;
    const overHeat = figure.data.some((trace) => trace.z);
    return figure.data.map((trace) => lit(trace, overHeat));
  }

  let printed = print.matches; // a printer's width and colours change the media, too

  function draw() {
    places.forEach(function (place, n) {
      const figure = stored.figures[n], layout = printed ? figure.paper : narrow.matches ? figure.narrow : figure.layout;
      const ink = dark.matches && !printed ? "#dfe5e5" : "#1c2326";
      const look = { font: { color: ink, family: "system-ui, sans-serif", size: 12 }, autosize: !printed };
      if (figure.data.length) window.Plotly.react(place, traces(figure), Object.assign({}, layout, look), stored.config);
    });
  }
  draw();
  for (const media of [dark, narrow]) media.addEventListener("change", draw);
  function onPaper(so) {
    if (printed === so) return;
    printed = so;
    draw();
  }
  addEventListener("beforeprint", () => onPaper(true));
  addEventListener("afterprint", () => onPaper(print.matches));
  print.addEventListener("change", () => onPaper(print.matches));
})();
