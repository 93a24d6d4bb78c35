"""A chart for plotly.js as plain data, which a page draws without fetching anything.

Text is escaped, because plotly reads a few tags in it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
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

GAP = 0.09
RAMP = [[0, "#443a83"], [0.5, "#2c8e8c"], [1, "#f2c14b"]]


def figure(chart: Chart, *, height: int | None = None) -> dict[str, Any]:
    """`data` and `layout` for Plotly.newPlot."""
    layout: dict[str, Any] = {
        "title": {"text": words(chart.title), "x": 0.01, "font": {"size": 16}},
        "height": height or max(380, 300 * chart.rows + 90),
        "margin": {"l": 64, "r": 24, "t": 54, "b": 56},
        "showlegend": chart.legend,
        "barmode": "stack",
        "hovermode": "closest",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "annotations": [],
    }
    data: list[dict[str, Any]] = []
    for n, panel in enumerate(chart.panels):
        suffix = "" if n == 0 else str(n + 1)
        x, y = _domain(n % chart.columns, chart.columns), _domain(n // chart.columns, chart.rows)
        up = [1 - y[1], 1 - y[0]]
        there = {"visible": chart.has_marks}
        layout[f"xaxis{suffix}"] = {**_axis(panel.x), **there, "domain": x, "anchor": f"y{suffix}"}
        layout[f"yaxis{suffix}"] = {**_axis(panel.y, panel), **there, "domain": up, "anchor": f"x{suffix}"}
        if panel.title:
            layout["annotations"].append(_title(panel.title, sum(x) / 2, up[1]))
        for mark in panel.marks:
            for trace in _traces(mark, chart):
                data.append({**trace, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})
    if chart.note:
        layout["annotations"].append(_note(chart.note, bare=not data))
    return {"data": data, "layout": layout}


def words(text: str) -> str:
    return html.escape(_printable(text), quote=False)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:300]


def _domain(n: int, count: int) -> list[float]:
    gap = GAP if count > 1 else 0.0
    size = (1 - gap * (count - 1)) / count
    return [round(n * (size + gap), 4), round(min(1.0, n * (size + gap) + size), 4)]


def _axis(axis: Axis, panel: Panel | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "title": {"text": words(axis.title), "standoff": 8},
        "automargin": True,
        "zeroline": False,
        "gridcolor": "rgba(128,140,140,.22)",
    }
    if axis.log:
        made["type"] = "log"
    if axis.marks:
        made |= {
            "tickvals": [v for v, _ in axis.marks],
            "ticktext": [words(_short(t)) for _, t in axis.marks],
        }
    if axis.low is not None or axis.high is not None:
        made["range"] = [_end(axis.low, axis.log), _end(axis.high, axis.log)]
    if panel and any(isinstance(mark, Bars) for mark in panel.marks):
        made["type"] = "category"
    return made


def _end(value: float | None, log: bool) -> float | None:
    if value is None or not log:
        return value
    return math.log10(value) if value > 0 else None


def _short(text: str) -> str:
    return text if len(text) <= 28 else text[:27] + "…"


def _title(text: str, x: float, y: float) -> dict[str, Any]:
    place = {"xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom", "showarrow": False}
    return {"text": words(text), "x": x, "y": y, **place}


def _note(text: str, *, bare: bool) -> dict[str, Any]:
    place = {"xref": "paper", "yref": "paper", "showarrow": False, "font": {"size": 12, "color": "#6b7679"}}
    if bare:
        return {"text": words(text), "x": 0.5, "y": 0.5, **place}
    return {"text": words(text), "x": 1, "y": 1, "xanchor": "right", "yanchor": "bottom", **place}


def _traces(mark: Mark, chart: Chart) -> Iterator[dict[str, Any]]:
    if isinstance(mark, Polyline):
        yield _line(mark)
    elif isinstance(mark, ShadedArea):
        yield from _band(mark)
    elif isinstance(mark, Points):
        yield _points(mark, chart)
    elif isinstance(mark, Bars):
        yield _bars(mark)
    else:
        yield _heat(mark)


def _line(mark: Polyline) -> dict[str, Any]:
    shape = {"shape": "hv"} if mark.steps else {}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(mark.x),
        "y": _plain(mark.y),
        "name": words(mark.name),
        "showlegend": bool(mark.legend and mark.name),
        "line": {"color": mark.colour, "width": mark.width, **shape},
        "opacity": mark.opacity,
        **({} if mark.name else {"hoverinfo": "skip"}),
    }


def _band(mark: ShadedArea) -> Iterator[dict[str, Any]]:
    x = [*mark.x, *reversed(mark.x)]
    y = [*mark.high, *reversed(mark.low)]
    colour = tuple(int(mark.colour[i : i + 2], 16) for i in (1, 3, 5))
    shade = f"rgba({colour[0]},{colour[1]},{colour[2]},.16)"
    yield {
        "type": "scatter",
        "x": x,
        "y": _plain(y),
        "fill": "toself",
        "fillcolor": shade,
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _points(mark: Points, chart: Chart) -> dict[str, Any]:
    marker: dict[str, Any] = {"size": mark.size, "opacity": mark.opacity, "color": mark.colour}
    if mark.values is not None:
        marker |= {
            "color": _plain(mark.values),
            "colorscale": RAMP,
            "colorbar": {"title": {"text": words(chart.scale)}, "thickness": 12},
        }
    return {
        "type": "scatter",
        "mode": "markers",
        "x": _plain(mark.x),
        "y": _plain(mark.y),
        "name": words(mark.name),
        "showlegend": bool(mark.legend and mark.name),
        "marker": marker,
        "text": [words(t) for t in mark.texts],
        "hovertemplate": "%{text}<br>%{x}, %{y}<extra></extra>"
        if mark.texts
        else "%{x}, %{y}<extra></extra>",
    }


def _bars(mark: Bars) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "y": [words(_short(label)) for label in mark.labels],
        "x": _plain(mark.values),
        "name": words(mark.name),
        "showlegend": bool(mark.name),
        "marker": {"color": mark.colour},
        "text": [words(t) for t in mark.texts],
        "textposition": "auto",
        "hovertemplate": "%{y}: %{x}<extra></extra>",
    }


def _heat(mark: Heat) -> dict[str, Any]:
    return {
        "type": "contour",
        "x": list(mark.x),
        "y": list(mark.y),
        "z": [_plain(row) for row in mark.z],
        "colorscale": RAMP,
        "contours": {"coloring": "heatmap"},
        "line": {"width": 0.5},
        "colorbar": {"title": {"text": words(mark.title)}, "thickness": 12},
        "hoverinfo": "skip",
    }


def _plain(values: Sequence[float | None]) -> list[float | None]:
    """Replace values that are not finite numbers by gaps."""
    return [v if v is not None and is_drawable(v) else None for v in values]
