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
    Labels,
    Mark,
    Panel,
    Points,
    Polyline,
    ShadedArea,
    is_drawable,
)
from hostler.analysis.plots.label_fit import middle

GAP, SIDE = 0.5, 0.3  # between panels, of a panel: above each other, beside each other
PAPER = 650  # pixels of a page between its margins, A4 or letter; three plots of one row to an A4 page
LEGEND = 12  # names in a legend
LINE = 19  # pixels of a line of it
LETTER = 7  # pixels of a letter of ticks and titles, at most
LEVEL, TURNED = 4, 12  # letters of a tick: fewer are not worth reading; of one that has to be turned
RAMP = [[0, "#443a83"], [0.5, "#2c8e8c"], [1, "#f2c14b"]]


def figure(chart: Chart) -> dict[str, Any]:
    """`data` for Plotly.newPlot, a `layout` for a wide page, one for a `narrow` page, whose panels stand
    under each other, and one for `paper`. Title and note are the page's."""
    data: list[dict[str, Any]] = []
    for n, panel in enumerate(chart.panels):
        suffix = "" if n == 0 else str(n + 1)
        for mark in panel.marks:
            for trace in _traces(mark, chart):
                data.append({**trace, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})
    return {
        "data": data,
        "layout": _layout(chart, chart.columns, 1000),
        "narrow": _layout(chart, 1, 300),
        "paper": {**_layout(chart, chart.columns, PAPER - 80, 150), "width": PAPER},
    }


def _layout(chart: Chart, columns: int, width: int, row: int = 250) -> dict[str, Any]:
    """`row`: pixels for each row of panels."""
    rows = max(1, -(-len(chart.panels) // columns))
    marks = [m for m in chart.panels[0].marks if getattr(m, "name", "") and getattr(m, "legend", True)]
    names = [str(getattr(m, "name", "")) for m in marks]
    shown = chart.legend and 0 < len(names) <= LEGEND
    few = max((len(m.labels) for p in chart.panels for m in p.marks if isinstance(m, Bars)), default=0)
    tall = 90 + 34 * few if few else row * rows + 70
    below = -54 / (tall - 56)  # of the panels' height, past ticks and title
    layout: dict[str, Any] = {
        "height": min(2400, tall + (7 + LINE * _legend_lines(names, width) if shown else 0)),
        "margin": {"l": 56, "r": 16, "t": 26 if any(panel.title for panel in chart.panels) else 12, "b": 44},
        "showlegend": shown,
        "legend": {"orientation": "h", "x": 0, "y": below, "yanchor": "top", "font": {"size": 12}},
        "barmode": "stack",
        "hovermode": "closest",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "annotations": [],
    }
    for n, panel in enumerate(chart.panels):
        suffix = "" if n == 0 else str(n + 1)
        x, y = _domain(n % columns, columns, SIDE), _domain(n // columns, rows, GAP * 3 / max(3, rows))
        up, there = [1 - y[1], 1 - y[0]], {"visible": chart.has_marks}
        across = (x[1] - x[0]) * (width - 80 if chart.scale and not chart.legend else width)
        layout[f"xaxis{suffix}"] = {**_axis(panel.x, across), **there, "domain": x, "anchor": f"y{suffix}"}
        seen = {"visible": chart.has_marks and not panel.y.hidden}
        upwards = _axis(panel.y, (up[1] - up[0]) * (tall - 56), panel)
        layout[f"yaxis{suffix}"] = {**upwards, **seen, "domain": up, "anchor": f"x{suffix}"}
        if panel.title:
            layout["annotations"].append(_title(panel.title, sum(x) / 2, up[1]))
    return layout


def _legend_lines(names: Sequence[str], width: int) -> int:
    """Lines of a legend below panels of so many pixels: it has columns, as wide as its longest name."""
    widest = 48 + 7 * max(map(len, names))
    return -(-len(names) // max(1, width // widest))


def words(text: str) -> str:
    return html.escape(_printable(text), quote=False)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:300]


def _domain(n: int, count: int, between: float) -> list[float]:
    gap = between / count if count > 1 else 0.0
    size = (1 - gap * (count - 1)) / count
    return [round(n * (size + gap), 4), round(min(1.0, n * (size + gap) + size), 4)]


def _axis(axis: Axis, room: float, panel: Panel | None = None) -> dict[str, Any]:
    """An axis of so many pixels; `panel`: it is that one's upward axis."""
    made: dict[str, Any] = {
        "title": {"text": words(middle(axis.title, max(LEVEL, int(room / LETTER)))), "standoff": 8},
        "automargin": True,
        "zeroline": False,
        "gridcolor": "rgba(128,140,140,.22)",
        "exponentformat": "e",
    }
    if axis.log:
        made |= {"type": "log", **({} if panel else {"dtick": 1})}
    if axis.marks:
        each = 24 if panel else int(room / len(axis.marks) / LETTER)
        most = min(24, each if each >= LEVEL else TURNED)
        made |= {
            "tickvals": [v for v, _ in axis.marks],
            "ticktext": [words(middle(t, most)) for _, t in axis.marks],
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


def _title(text: str, x: float, y: float) -> dict[str, Any]:
    place = {"xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom", "showarrow": False}
    return {"text": words(text), "x": x, "y": y, **place}


def _traces(mark: Mark, chart: Chart) -> Iterator[dict[str, Any]]:
    if isinstance(mark, Polyline):
        yield _line(mark)
    elif isinstance(mark, ShadedArea):
        yield from _band(mark)
    elif isinstance(mark, Points):
        yield _points(mark, chart)
    elif isinstance(mark, Bars):
        yield _bars(mark)
    elif isinstance(mark, Labels):
        yield _labels(mark)
    else:
        yield _heat(mark)


def _line(mark: Polyline) -> dict[str, Any]:
    shape = {"shape": "hv"} if mark.steps else {}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": _short_numbers(mark.x),
        "y": _short_numbers(mark.y),
        "name": words(mark.name),
        "showlegend": bool(mark.legend and mark.name),
        "line": {"color": mark.colour, "width": mark.width, **shape},
        "opacity": mark.opacity,
        **({"hovertemplate": "%{x}, %{y}"} if mark.name else {"hoverinfo": "skip"}),
    }


def _band(mark: ShadedArea) -> Iterator[dict[str, Any]]:
    x = [*mark.x, *reversed(mark.x)]
    y = [*mark.high, *reversed(mark.low)]
    colour = tuple(int(mark.colour[i : i + 2], 16) for i in (1, 3, 5))
    shade = f"rgba({colour[0]},{colour[1]},{colour[2]},.16)"
    yield {
        "type": "scatter",
        "x": _short_numbers(x),
        "y": _short_numbers(y),
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
    over_heat = any(isinstance(one, Heat) for panel in chart.panels for one in panel.marks)
    return {
        "type": "scatter",
        "mode": "markers",
        **({"cliponaxis": False} if over_heat else {}),
        "x": _short_numbers(mark.x, 10),
        "y": _short_numbers(mark.y, 10),
        "name": words(mark.name),
        "showlegend": bool(mark.legend and mark.name),
        "marker": marker,
        "text": [words(t) for t in mark.texts],
        "hovertemplate": ("%{text}<br>" if mark.texts else "") + "%{x}, %{y:.10~g}<extra></extra>",
    }


def _bars(mark: Bars) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "y": [words(middle(label, 28)) for label in mark.labels],
        "x": _plain(mark.values),
        "name": words(mark.name),
        "showlegend": bool(mark.name),
        "marker": {"color": mark.colour},
        "text": [words(t) for t in mark.texts],
        "textposition": "inside" if mark.name else "outside",
        "insidetextanchor": "middle",
        "cliponaxis": False,
        "hovertemplate": "%{y}: %{x:.10~g}<extra></extra>",
    }


def _labels(mark: Labels) -> dict[str, Any]:
    up = {"top": "bottom", "bottom": "top", "center": "middle"}[mark.up]  # plotly names the side of the place
    across = {"left": "right", "right": "left", "center": "center"}[mark.across]
    return {
        "type": "scatter",
        "mode": "text",
        "x": list(mark.x),
        "y": [y + mark.offset[1] * 0.012 for y in mark.y],
        "text": [words(middle(text, 14)) for text in mark.texts],
        "textposition": f"{up} {across}",
        "textfont": {"size": 11},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
    }


def _heat(mark: Heat) -> dict[str, Any]:
    made = {
        "x": list(mark.x),
        "y": list(mark.y),
        "z": [_short_numbers(row, 10 if mark.cells else 6) for row in mark.z],
        "colorscale": RAMP,
        "colorbar": {"title": {"text": words(mark.title)}, "thickness": 12},
    }
    if mark.cells:
        return {**made, "type": "heatmap", "xgap": 2, "ygap": 2, "hovertemplate": "%{z:.10~g}<extra></extra>"}
    smooth = {"contours": {"coloring": "heatmap"}, "line": {"width": 0.5}, "hoverinfo": "skip"}
    return {**made, "type": "contour", **smooth}


def _short_numbers(values: Sequence[float | None], digits: int = 6) -> list[float | None]:
    """Values of a curve with six digits: a hundred curves fill the page otherwise."""
    return [None if v is None else float(f"{v:.{digits}g}") for v in _plain(values)]


def _plain(values: Sequence[float | None]) -> list[float | None]:
    """Replace values that are not finite numbers by gaps."""
    return [v if v is not None and is_drawable(v) else None for v in values]
