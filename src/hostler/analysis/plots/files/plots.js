"use strict";
// Draws the stored figures in the colours and the width of the page; again when these change, and for paper.
(function () {
  const stored = JSON.parse(document.getElementById("stored").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)"), narrow = matchMedia("(max-width: 640px)");
  const paper = 650; // pixels of a page between its margins, A4 or letter
  const places = stored.figures.map((_, n) => document.getElementById("plot-" + n));

  let printed = false; // a printer's width and colours change the media, too

  function draw() {
    places.forEach(function (place, n) {
      const figure = stored.figures[n], layout = !printed && narrow.matches ? figure.narrow : figure.layout;
      const ink = dark.matches && !printed ? "#dfe5e5" : "#1c2326";
      const look = { font: { color: ink, family: "system-ui, sans-serif", size: 12 }, autosize: !printed };
      if (printed) Object.assign(look, { width: paper, height: Math.round(layout.height * 0.8) }); // three to a page
      if (figure.data.length) window.Plotly.react(place, figure.data, Object.assign({}, layout, look), stored.config);
    });
  }
  draw();
  for (const media of [dark, narrow]) media.addEventListener("change", draw);
  for (const [name, so] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(name, function () { printed = so; draw(); });
  }
})();
