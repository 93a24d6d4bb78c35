"""Parallel coordinates: an axis for each parameter, a line for each run, coloured by how good it is."""

from __future__ import annotations

import math

from hostler.analysis.plots.chart import Axis, Chart, Panel, Points, Polyline, empty
from hostler.analysis.plots.importance import importances
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.source import PlotSource, positions

AXES = 8
SHADES = 20  # runs of one shade are one line, so that thousands are few
RAMP = ((0x44, 0x3A, 0x83), (0x2C, 0x8E, 0x8C), (0xF2, 0xC1, 0x4B))


def parallel(source: PlotSource, look: Look) -> Chart:
    title = f"Parameters and {source.label}"
    runs = source.ranked[::-1]  # the best are drawn last
    keys = [source.check(k) for k in look.keys] or _telling(source)
    if not runs or not keys:
        return empty(title, "no finished runs differ in a parameter yet" if runs else source.why_none)
    columns: list[list[float]] = []
    marks: list[Points] = []
    labels: list[tuple[float, str]] = []
    for n, key in enumerate([*keys, source.metric]):
        last = n == len(keys)
        places, names, wide = ([r.value for r in runs], (), False) if last else positions(runs, key)
        columns.append(_unit([math.log10(v) for v in places] if wide else places))
        low, high = _ends(places, names)
        marks.append(Points([n, n], [0, 1], "", "#5d676a", texts=[low, high], size=5, legend=False))
        labels.append((float(n), f"{key}: {low} … {high}"))
    heights = list(zip(*columns, strict=True))
    lines = _shaded(heights, source.sign)
    frame = [Polyline([n, n], [0, 1], "", "#9aa3a6", 1, legend=False) for n in range(len(labels))]
    axis = Axis("", low=-0.3, high=len(labels) - 0.7, marks=tuple(labels))
    panel = Panel(
        [*lines, *frame, *marks], axis, Axis("", low=-0.06, high=1.06, marks=((0.0, "low"), (1.0, "high")))
    )
    return Chart(title, [panel], note="yellow is best", legend=False)


def _telling(source: PlotSource) -> list[str]:
    shares = importances(source)
    ordered = sorted(source.varying, key=lambda key: -shares.get(key, 0.0))[:AXES]
    return [key for key in source.varying if key in ordered]


def _unit(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(v - low) / (high - low) if high > low else 0.5 for v in values]


def _ends(places: list[float], names: tuple[tuple[float, str], ...]) -> tuple[str, str]:
    """The lowest and the highest value of an axis, in words."""
    shown = dict(names)
    low, high = min(places), max(places)
    return shown.get(low, f"{low:.4g}"), shown.get(high, f"{high:.4g}")


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
        lines.append(Polyline(x, y, "", _tone(part), 1.0 + part, 0.35 + 0.5 * part, legend=False))
    return lines


def _tone(part: float) -> str:
    place = part * (len(RAMP) - 1)
    n = min(int(place), len(RAMP) - 2)
    mixed = [round(a + (b - a) * (place - n)) for a, b in zip(RAMP[n], RAMP[n + 1], strict=True)]
    return "#" + "".join(f"{c:02x}" for c in mixed)
