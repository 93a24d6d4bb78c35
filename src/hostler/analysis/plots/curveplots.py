"""Curves: the best run among the others, the best of all sweeps, and grids with repeats averaged."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from statistics import fmean, pstdev

from hostler.analysis.plots.chart import GREY, PALETTE, Chart, Panel, Polyline, ShadedArea, empty, is_drawable
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.source import PlotRun, PlotSource, PlottedCurve, groups
from hostler.analysis.thin import thin
from hostler.spec.units import counted, show_number

OTHERS = 200  # grey curves behind the best
BEHIND, SEVERAL = 150, 8000  # points of each of them, and of all together, so that a report stays small
GRID = 200  # points of an averaged curve
PANELS = 36


def best(source: PlotSource, look: Look) -> Chart:
    """The best run's curve, the others behind it."""
    title = f"Best run by {source.label}"
    ranked = source.ranked
    if not ranked:
        return empty(title, source.why_none)
    curves = {c.run: c for c in source.read([run.row.id for run in ranked[: OTHERS + 1]], look.x)}
    first = ranked[0]
    most = max(40, min(BEHIND, SEVERAL // len(ranked)))
    lines = [_line(curves[r.row.id], "", GREY, 0.8, 0.45, most) for r in ranked[1:] if r.row.id in curves]
    if first.row.id in curves:
        lines.append(_line(curves[first.row.id], f"{first.row.name}: {first.shown}", PALETTE[0], 2.6))
    remaining = len(ranked) - OTHERS - 1
    note = f"{counted(remaining, 'worse run')} not shown" if remaining > 0 else ""
    return Chart(title, [_panel(source, look, lines)], note=note)


def archive(source: PlotSource, look: Look) -> Chart:
    """Curves of the best runs of all these sweeps, or of the archive."""
    ranked = source.ranked[: look.top]
    title = f"The best {len(ranked) or look.top} by {source.label}"
    if not ranked:
        return empty(title, source.why_none)
    curves = {c.run: c for c in source.read([run.row.id for run in ranked], look.x)}
    lines = [
        _line(
            curves[run.row.id],
            f"{n + 1}. {run.row.name}: {show_number(run.value)}",
            PALETTE[n % len(PALETTE)],
            1.8,
        )
        for n, run in enumerate(ranked)
        if run.row.id in curves
    ]
    return Chart(title, [_panel(source, look, lines)])


def grid(source: PlotSource, look: Look) -> Chart:
    """Panels by row and column, a line for each value of the legend: the mean of its runs, with a band of one
    standard deviation where there are several."""
    title = f"{source.metric or 'metric'} over {look.x}"
    runs = [run for run in source.runs if run.row.attempt]
    curves = {c.run: c for c in source.read([run.row.id for run in runs], look.x) if len(c.x)}
    if not curves:
        return empty(title, source.why_none)
    down = groups(runs, source.check(look.row)) if look.row else [("", runs)]
    across = [name for name, _ in groups(runs, source.check(look.column))] if look.column else [""]
    colours = _colours(source, look, runs)
    panels: list[Panel] = []
    for row, part in down:
        cells = dict(groups(part, look.column)) if look.column else {"": part}
        for column in across:
            words = [
                f"{look.row}={row}" if look.row else "",
                f"{look.column}={column}" if look.column else "",
            ]
            marks = _averages(cells.get(column, []), look.legend, curves, colours, legend=not panels)
            panels.append(_panel(source, look, marks, ", ".join(filter(None, words))))
    remaining = len(panels) - PANELS
    note = f"{counted(remaining, 'more panel')} not shown" if remaining > 0 else ""
    return Chart(title, panels[:PANELS], columns=len(across) if len(across) <= 6 else 6, note=note)


def _colours(source: PlotSource, look: Look, runs: Sequence[PlotRun]) -> dict[str, str]:
    names = [name for name, _ in groups(runs, source.check(look.legend))] if look.legend else ["mean"]
    return {name: PALETTE[n % len(PALETTE)] for n, name in enumerate(names)}


def _averages(
    runs: Sequence[PlotRun],
    key: str | None,
    curves: dict[str, PlottedCurve],
    colours: dict[str, str],
    *,
    legend: bool,
) -> list[Polyline | ShadedArea]:
    marks: list[Polyline | ShadedArea] = []
    for name, part in groups(runs, key) if key else [("mean", list(runs))]:
        own = [curves[run.row.id] for run in part if run.row.id in curves]
        if not own:
            continue
        x, mean, deviation = average(own)
        if len(own) > 1:
            low = [m - d for m, d in zip(mean, deviation, strict=True)]
            high = [m + d for m, d in zip(mean, deviation, strict=True)]
            marks.append(ShadedArea(x, low, high, colours[name]))
        shown = f"{key}={name}" if key else f"mean of {len(own)}" if len(own) > 1 else part[0].row.name
        marks.append(Polyline(x, mean, shown, colours[name], legend=legend))
    return marks


def average(curves: Sequence[PlottedCurve]) -> tuple[list[float], list[float], list[float]]:
    """(x, mean, standard deviation) over curves, each counted only where it has been. Pure."""
    clean = [_finite(curve) for curve in curves]
    clean = [pair for pair in clean if pair[0]]
    places = sorted({x for xs, _ in clean for x in xs})
    if len(places) > GRID:
        low, high = places[0], places[-1]
        places = [low + (high - low) * n / (GRID - 1) for n in range(GRID)]
    rows = [(x, [v for pair in clean if (v := _at(pair, x)) is not None]) for x in places]
    kept = [(x, values) for x, values in rows if values]
    return [x for x, _ in kept], [fmean(v) for _, v in kept], [pstdev(v) for _, v in kept]


def _finite(curve: PlottedCurve) -> tuple[list[float], list[float]]:
    pairs = sorted((x, y) for x, y in zip(curve.x, curve.y, strict=True) if is_drawable(x) and is_drawable(y))
    return [x for x, _ in pairs], [y for _, y in pairs]


def _at(pair: tuple[list[float], list[float]], x: float) -> float | None:
    """Its value there, between two points in a straight line; None beyond its ends."""
    xs, ys = pair
    if x < xs[0] or x > xs[-1]:
        return None
    n = bisect_left(xs, x)
    if xs[n] == x:
        return ys[n]
    part = (x - xs[n - 1]) / (xs[n] - xs[n - 1])
    return ys[n - 1] + part * (ys[n] - ys[n - 1])


def _line(
    curve: PlottedCurve, name: str, colour: str, width: float, opacity: float = 1.0, most: int = 600
) -> Polyline:
    x, y = thin(curve.x, curve.y, most)
    shown = [v if is_drawable(v) else None for v in y]
    return Polyline(x, shown, name, colour, width, opacity, legend=bool(name))


def _panel(source: PlotSource, look: Look, marks: Sequence[Polyline | ShadedArea], title: str = "") -> Panel:
    return Panel(marks, look.axis_x(look.x), look.axis_y(source.metric), title)
