"use strict";
// Draws the stored figures, in the colours of the page; again when these change.
(function () {
  const stored = JSON.parse(document.getElementById("stored").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  function draw() {
    const ink = dark.matches ? "#dfe5e5" : "#1c2326";
    stored.figures.forEach(function (figure, n) {
      const place = document.getElementById("plot-" + n);
      if (!place) return;
      place.style.height = figure.layout.height + "px";
      const layout = Object.assign({}, figure.layout, { font: { color: ink, family: "system-ui, sans-serif" }, autosize: true });
      window.Plotly.react(place, figure.data, layout, stored.config);
    });
  }
  draw();
  dark.addEventListener("change", draw);
})();
