"""Plots of runs: pure functions from runs to a chart, and two ways to draw one.

`draw(store, kind, sweep, ...)` makes a chart; `save(chart, path)` writes PNG, SVG or HTML.
"""

from __future__ import annotations

from hostler.analysis.plots.drawing import draw
from hostler.analysis.plots.save import save

__all__ = ["draw", "save"]
