"""The metric along one parameter at a time, and over two of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from hostler.analysis.plots.chart import PALETTE, Chart, Heat, Panel, Points, empty
from hostler.analysis.plots.importance import importances
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.source import PlotRun, PlotSource, groups, label, positions, short
from hostler.errors import UsageError
from hostler.spec.units import counted, show_number

PANELS = 12
CELLS = 40
RANGES = 8  # of many numbers beside categories


def slices(source: PlotSource, look: Look) -> Chart:
    """A panel for each parameter; the colour is when the run was taken."""
    title = f"{source.label} along each parameter"
    runs = source.valued
    keys = [source.check(k) for k in look.keys] or source.varying
    if not runs or not keys:
        return empty(title, "no finished runs differ in a parameter yet" if runs else source.why_none)
    panels = []
    for key in keys[:PANELS]:
        places, marks, wide = source.positions(runs, key)
        texts = [f"{run.row.name}  {key}={label(run.at(key))}" for run in runs]
        order = [float(run.row.index) for run in runs]
        points = Points(places, [r.value for r in runs], "", PALETTE[0], order, texts, legend=False)
        panels.append(Panel([points], look.axis_x(key, marks, wide), look.axis_y(source.metric)))
    remaining = len(keys) - PANELS
    note = f"{counted(remaining, 'more parameter')} not shown; --keys chooses" if remaining > 0 else ""
    return Chart(title, panels, columns=min(3, len(panels)), note=note, scale="run", legend=False)


def contour(source: PlotSource, look: Look) -> Chart:
    """The metric over two parameters, between runs as a mean weighted by closeness."""
    title = f"{source.label} over two parameters"
    runs = source.valued
    keys = [source.check(k) for k in look.keys] or _two(source)
    if len(keys) != 2:
        if look.keys:
            raise UsageError(
                "a contour plot needs exactly two parameters", hint="for example --keys lr,width"
            )
        return empty(title, "needs two parameters in which finished runs differ")
    if not runs:
        return empty(title, source.why_none)
    (xs, x_marks, x_wide), (ys, y_marks, y_wide) = (source.positions(runs, key) for key in keys)
    values = [run.value for run in runs]
    if x_marks or y_marks:
        return _cells(title, source, look, keys)
    heat = _surface(xs, ys, values, x_wide, y_wide, source.metric)
    texts = [f"{run.row.name}: {show_number(run.value)}" for run in runs]
    dots = Points(xs, ys, "runs", "#1c2326", texts=texts, size=5, legend=False)
    across, up = look.axis_x(keys[0], x_marks, x_wide), look.axis_x(keys[1], y_marks, y_wide)
    return Chart(
        title,
        [Panel([heat, dots], across, up)],
        note="between runs: a mean weighted by closeness",
        legend=False,
    )


def _cells(title: str, source: PlotSource, look: Look, keys: Sequence[str]) -> Chart:
    """A cell for each pair of values, coloured by the mean of its runs: nothing lies between categories."""
    runs = source.valued
    (across, x_marks), (up, y_marks) = _places(runs, keys[0]), _places(runs, keys[1])
    held: dict[tuple[int, int], list[float]] = {}
    for run, x, y in zip(runs, across, up, strict=True):
        held.setdefault((x, y), []).append(run.value)
    z = [
        [fmean(held[x, y]) if (x, y) in held else math.nan for x in range(len(x_marks))]
        for y in range(len(y_marks))
    ]
    places = [place for place, _ in x_marks], [place for place, _ in y_marks]
    heat = Heat(places[0], places[1], z, source.metric, cells=True)
    several = any(len(values) > 1 for values in held.values())
    note = "a cell is the mean of its runs" if several else ""
    panel = Panel([heat], look.axis_x(keys[0], x_marks), look.axis_x(keys[1], y_marks))
    return Chart(title, [panel], note=note, legend=False)


def _places(runs: Sequence[PlotRun], key: str) -> tuple[list[int], tuple[tuple[float, str], ...]]:
    """(the cell of each run, names of cells): a value each, or of many numbers ranges of equal count."""
    found = groups(runs, key)
    if len(found) > RANGES and not positions(runs, key)[1]:
        ordered = [run for _, part in found for run in part]
        bounds = [n * len(ordered) // RANGES for n in range(RANGES + 1)]
        parts = [ordered[a:b] for a, b in pairwise(bounds) if b > a]
        found = [(f"{short(part[0].at(key))} – {short(part[-1].at(key))}", part) for part in parts]
    place = {run.row.id: n for n, (_, part) in enumerate(found) for run in part}
    return [place[run.row.id] for run in runs], tuple((float(n), name) for n, (name, _) in enumerate(found))


def _two(source: PlotSource) -> list[str]:
    shares = importances(source)
    return sorted(source.varying, key=lambda key: -shares.get(key, 0.0))[:2]


def _surface(
    xs: Sequence[float], ys: Sequence[float], values: Sequence[float], x_log: bool, y_log: bool, title: str
) -> Heat:
    ax, ay = _ticks(xs, x_log), _ticks(ys, y_log)
    u, v = _scaled(xs, ax, x_log), _scaled(ys, ay, y_log)
    gu, gv = _scaled(ax, ax, x_log), _scaled(ay, ay, y_log)
    places = np.asarray(u), np.asarray(v), np.asarray(values, dtype=float)
    z = [[_weighted(a, b, *places) for a in gu] for b in gv]
    return Heat(ax, ay, z, title)


def _ticks(values: Sequence[float], log: bool) -> list[float]:
    warp, back = (math.log10, lambda v: 10**v) if log else (float, float)
    low, high = warp(min(values)), warp(max(values))
    if low == high:
        low, high = low - 0.5, high + 0.5
    return [back(low + (high - low) * n / (CELLS - 1)) for n in range(CELLS)]


def _scaled(values: Sequence[float], ends: Sequence[float], log: bool) -> list[float]:
    warp = math.log10 if log else float
    low, high = warp(ends[0]), warp(ends[-1])
    return [(warp(v) - low) / (high - low) for v in values]


def _weighted(a: float, b: float, u: Any, v: Any, values: Any) -> float:
    weights = ((a - u) ** 2 + (b - v) ** 2 + 1e-4) ** -1.5
    return float(weights @ values / weights.sum())
