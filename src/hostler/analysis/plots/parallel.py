"""Parallel coordinates: an axis for each parameter, a line for each run, coloured by how good it is."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hostler.analysis.plots.chart import Axis, Chart, Labels, Panel, Polyline, empty
from hostler.analysis.plots.importance import importances
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.source import PlotSource
from hostler.spec.units import show_number

AXES = 8
FEW = 8  # categories that are all named
SHADES = 20  # runs of one shade are one line, so that thousands are few
RAMP = ((0x44, 0x3A, 0x83), (0x2C, 0x8E, 0x8C), (0xF2, 0xC1, 0x4B))


def parallel(source: PlotSource, look: Look) -> Chart:
    title = f"Parameters and {source.label}"
    runs = source.ranked[::-1]  # the best are drawn last
    keys = [source.check(k) for k in look.keys] or _telling(source)
    if not runs or not keys:
        return empty(title, "no finished runs differ in a parameter yet" if runs else source.why_none)
    columns: list[list[float]] = []
    ends: list[Labels] = []
    for n, key in enumerate([*keys, source.metric]):
        last = n == len(keys)
        places, names, wide = ([r.value for r in runs], (), False) if last else source.positions(runs, key)
        columns.append(_unit([math.log10(v) for v in places] if wide else places))
        ends += _ends(n, places, columns[-1], names)
    heights = list(zip(*columns, strict=True))
    lines = _shaded(heights, source.sign)
    frame = [Polyline([n, n], [0, 1], "", "#9aa3a6", 1, legend=False) for n in range(len(columns))]
    marks = tuple((float(n), key) for n, key in enumerate([*keys, source.metric]))
    across = Axis("", low=-0.4, high=len(columns) - 0.5, marks=marks)
    panel = Panel([*lines, *frame, *ends], across, Axis("", low=-0.12, high=1.1, hidden=True))
    return Chart(title, [panel], note="yellow is best", legend=False, wide=len(columns) > 4)


def _telling(source: PlotSource) -> list[str]:
    shares = importances(source)
    ordered = sorted(source.varying, key=lambda key: -shares.get(key, 0.0))[:AXES]
    return [key for key in source.varying if key in ordered]


def _unit(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(v - low) / (high - low) if high > low else 0.5 for v in values]


def _ends(
    n: int, places: list[float], heights: list[float], names: tuple[tuple[float, str], ...]
) -> Iterator[Labels]:
    """Values beside an axis: the lowest below, the highest above; of few categories each at its height."""
    shown = dict(names)
    if 2 < len(shown) <= FEW:
        at = dict(zip(places, heights, strict=True))
        here = [(height, shown[place]) for place, height in at.items() if 0 < height < 1]
        yield Labels([n] * len(here), [h for h, _ in here], [t for _, t in here], "left", offset=(3.0, 0.0))
    low, high = min(places), max(places)
    yield Labels([n], [0], [shown.get(low, show_number(low))], up="top", offset=(0.0, -2.0))
    if high > low:
        yield Labels([n], [1], [shown.get(high, show_number(high))], up="bottom", offset=(0.0, 2.0))


def _shaded(heights: list[tuple[float, ...]], sign: int) -> list[Polyline]:
    count = len(heights[0])
    shades: dict[int, list[tuple[float, ...]]] = {}
    for one in heights:
        good = one[-1] if sign > 0 else 1 - one[-1]
        shades.setdefault(round(good * (SHADES - 1)), []).append(one)
    lines = []
    for shade in sorted(shades):
        x: list[float | None] = []
        y: list[float | None] = []
        for one in shades[shade]:
            x += [*map(float, range(count)), None]
            y += [*one, None]
        part = shade / (SHADES - 1)
        lines.append(Polyline(x, y, "", _tone(part), 1.0 + part, 0.5 + 0.35 * part, legend=False))
    return lines


def _tone(part: float) -> str:
    place = part * (len(RAMP) - 1)
    n = min(int(place), len(RAMP) - 2)
    mixed = [round(a + (b - a) * (place - n)) for a, b in zip(RAMP[n], RAMP[n + 1], strict=True)]
    return "#" + "".join(f"{c:02x}" for c in mixed)
