"use strict";
// Draws the stored figures as they come into sight, in the colours of the page; again when these change.
(function () {
  const stored = JSON.parse(document.getElementById("stored").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const places = stored.figures.map((_, n) => document.getElementById("plot-" + n));
  const drawn = new Set();
  function draw(n) {
    const figure = stored.figures[n], ink = dark.matches ? "#dfe5e5" : "#1c2326";
    const look = { font: { color: ink, family: "system-ui, sans-serif" }, autosize: true };
    window.Plotly.react(places[n], figure.data, Object.assign({}, figure.layout, look), stored.config);
    drawn.add(n);
  }
  const sight = new IntersectionObserver(function (seen) {
    for (const one of seen) {
      const n = places.indexOf(one.target);
      if (one.isIntersecting && !drawn.has(n)) draw(n);
    }
  }, { rootMargin: "300px" });
  places.forEach(function (place, n) {
    place.style.height = stored.figures[n].layout.height + "px";
    sight.observe(place);
  });
  dark.addEventListener("change", () => drawn.forEach(draw));
  addEventListener("beforeprint", () => places.forEach((_, n) => draw(n)));
})();
