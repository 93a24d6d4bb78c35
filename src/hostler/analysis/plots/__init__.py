"""Plots of runs: pure functions from runs to a chart, and two ways to draw one.

`draw(store, kind, sweep, ...)` makes a chart; `save(chart, path)` writes PNG, SVG, PDF or HTML.

drawing.py          the kinds of plots by name; the archive as a source
look.py             options of a plot
source.py           runs with values and curves, as plots take them
chart.py            a chart as plain data: panels, axes, marks
curveplots.py       curves: the best among the others, grids with repeats averaged
progress.py         the best so far over a search, with its cost
spending.py         money of launches by purpose
results.py          values by section or parameter
slices.py           a metric along one parameter, or over two
parallel.py         parallel coordinates
importance.py       share of a metric's variance that each parameter explains
with_matplotlib.py  a chart as PNG, SVG or PDF
label_fit.py        labels that fit: wrapped, turned, thinned
styles.py           style files of matplotlib
on_dark.py          colours that stand out from a dark ground
with_plotly.py      a chart for plotly.js
page.py             an HTML page that needs nothing else
save.py             a chart into a file
"""

from __future__ import annotations

from hostler.analysis.plots.drawing import draw
from hostler.analysis.plots.save import save

__all__ = ["draw", "save"]
