"""A chart as PNG or SVG, by matplotlib, without a screen.

Text is shown as it is: a dollar sign does not start a formula.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostler.analysis.plots.chart import (
    Axis,
    Bars,
    Chart,
    Heat,
    Mark,
    Panel,
    Points,
    Polyline,
    ShadedArea,
    is_drawable,
)

DPI = 130
RAMP = ["#443a83", "#2c8e8c", "#f2c14b"]
LEGEND = 12  # names in a legend


def write(chart: Chart, path: Path) -> None:
    """By the file's ending: .png, .svg, .pdf."""
    _drawn(chart).savefig(path, dpi=DPI, metadata={"Date": None} if path.suffix == ".svg" else None)


def png(chart: Chart) -> bytes:
    held = io.BytesIO()
    _drawn(chart).savefig(held, dpi=90, format="png")
    return held.getvalue()


def _drawn(chart: Chart) -> Any:
    from matplotlib.figure import Figure

    figure: Any = Figure(
        figsize=(max(7.5, 4.2 * chart.columns), max(4.6, 3.3 * chart.rows)), layout="constrained"
    )
    cells = figure.subplots(chart.rows, chart.columns, squeeze=False)
    for n, panel in enumerate(chart.panels):
        _panel(figure, cells[n // chart.columns][n % chart.columns], panel, chart)
    for n in range(len(chart.panels), chart.rows * chart.columns):
        cells[n // chart.columns][n % chart.columns].set_axis_off()
    figure.suptitle(words(chart.title), x=0.01, ha="left", fontsize=13)
    if not chart.has_marks:
        for axes in cells.flat:
            axes.set_axis_off()
        figure.text(0.5, 0.5, words(chart.note), ha="center", va="center", fontsize=11, color="#6b7679")
    elif chart.note:
        figure.text(0.995, 0.995, words(chart.note), ha="right", va="top", fontsize=8, color="#6b7679")
    return figure


def words(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text)[:120]
    return shown.replace("$", r"\$")


def _panel(figure: Any, axes: Any, panel: Panel, chart: Chart) -> None:
    axes.grid(True, color="#e6e9e8", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    left: dict[str, float] = {}
    for mark in panel.marks:
        _mark(figure, axes, mark, chart, left)
    _axis(axes, "x", panel.x)
    _axis(axes, "y", panel.y)
    if panel.title:
        axes.set_title(words(panel.title), fontsize=10)
    names = [name for name in axes.get_legend_handles_labels()[1] if not name.startswith("_")]
    if chart.legend and names and len(names) <= LEGEND:
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12), "ncol": 8} if left else {}
        axes.legend(fontsize=8, frameon=False, **below)


def _axis(axes: Any, which: str, axis: Axis) -> None:
    getattr(axes, f"set_{which}label")(words(axis.title))
    if axis.log:
        with warnings.catch_warnings(record=True) as said:
            getattr(axes, f"set_{which}scale")("log", nonpositive="mask")
        if said:
            axes.text(0.5, 0.5, "no value above 0", transform=axes.transAxes, ha="center", color="#6b7679")
    if axis.marks:
        shown = [(v, t if len(t) <= 20 else t[:19] + "…") for v, t in axis.marks]
        turned = (
            {"rotation": 30, "ha": "right"} if which == "x" and sum(len(t) for _, t in shown) > 60 else {}
        )
        getattr(axes, f"set_{which}ticks")(
            [v for v, _ in shown], [words(t) for _, t in shown], fontsize=8, **turned
        )
    low, high = axis.low, axis.high
    if low is not None or high is not None:
        getattr(axes, f"set_{which}lim")(low, high)


def _mark(figure: Any, axes: Any, mark: Mark, chart: Chart, left: dict[str, float]) -> None:
    if isinstance(mark, Polyline):
        style = "steps-post" if mark.steps else "default"
        shown = words(mark.name) if mark.legend and mark.name else "_"
        axes.plot(
            _plain(mark.x),
            _plain(mark.y),
            color=mark.colour,
            linewidth=mark.width,
            alpha=mark.opacity,
            label=shown,
            drawstyle=style,
        )
    elif isinstance(mark, ShadedArea):
        axes.fill_between(mark.x, mark.low, mark.high, color=mark.colour, alpha=0.16, linewidth=0)
    elif isinstance(mark, Points):
        _points(figure, axes, mark, chart)
    elif isinstance(mark, Bars):
        _bars(axes, mark, left)
    else:
        _heat(figure, axes, mark)


def _points(figure: Any, axes: Any, mark: Points, chart: Chart) -> None:
    coloured = (
        {"c": _plain(mark.values), "cmap": _ramp()} if mark.values is not None else {"color": mark.colour}
    )
    label = words(mark.name) if mark.legend and mark.name else "_"
    drawn = axes.scatter(
        _plain(mark.x),
        _plain(mark.y),
        s=mark.size**2 / 2,
        alpha=mark.opacity,
        label=label,
        linewidths=0,
        zorder=3,
        **coloured,
    )
    if mark.values is not None and axes is figure.axes[0]:
        figure.colorbar(drawn, ax=figure.axes, label=words(chart.scale), shrink=0.7)


def _bars(axes: Any, mark: Bars, left: dict[str, float]) -> None:
    starts = [left.get(label, 0.0) for label in mark.labels]
    names = [words(label if len(label) <= 28 else label[:27] + "…") for label in mark.labels]
    drawn = axes.barh(
        names, mark.values, left=starts, color=mark.colour, label=words(mark.name) or "_", height=0.6
    )
    if mark.texts:
        axes.bar_label(
            drawn, [words(t) for t in mark.texts], label_type="center", fontsize=8, color="#14181a"
        )
    axes.set_ylim(-0.5 - (few := max(0.1, 2 - len(names) / 2)), len(names) - 0.5 + few)
    for label, value in zip(mark.labels, mark.values, strict=True):
        left[label] = left.get(label, 0.0) + value


def _heat(figure: Any, axes: Any, mark: Heat) -> None:
    drawn = axes.contourf(mark.x, mark.y, [_plain(row) for row in mark.z], levels=14, cmap=_ramp())
    figure.colorbar(drawn, ax=axes, label=words(mark.title))


def _ramp() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("hostler", RAMP)


def _plain(values: Sequence[float | None]) -> list[float]:
    return [v if v is not None and is_drawable(v) else math.nan for v in values]
