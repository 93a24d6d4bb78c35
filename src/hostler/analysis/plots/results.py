"""Results by section, or by any parameter: every run a point, the mean of groups of several a line."""

from __future__ import annotations

from statistics import fmean

from hostler.analysis.plots.chart import DIM, PALETTE, Chart, Panel, Points, Polyline, empty
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.source import SECTION, PlotSource, groups, label
from hostler.spec.units import counted


def results(source: PlotSource, look: Look) -> Chart:
    title = f"{source.label} by {(key := _key(source, look))}"
    runs = source.valued
    if not runs:
        return empty(title, source.why_none)
    places, marks, wide = source.positions(runs, key)
    at = dict(zip((run.row.id for run in runs), places, strict=True))
    lines = groups(runs, look.legend) if look.legend else [("", runs)]
    series: list[Polyline | Points] = []
    for n, (name, part) in enumerate(lines):
        colour = PALETTE[n % len(PALETTE)]
        means = [
            (at[own[0].row.id], fmean(run.value for run in own))
            for _, own in groups(part, key)
            if len(own) > 1  # of a single run the mean is its point
        ]
        if means:
            line = ([x for x, _ in means], [y for _, y in means])
            series.append(Polyline(*line, f"mean, {name}" if name else "mean", colour if name else DIM))
        series.append(
            Points(
                [at[run.row.id] for run in part],
                [run.value for run in part],
                name or "runs",
                colour,
                texts=[f"{run.row.name}  {key}={label(run.at(key))}" for run in part],
            )
        )
    missing = len(source.runs) - len(runs)
    note = f"not shown: {counted(missing, 'run')} without a value" if missing else ""
    return Chart(title, [Panel(series, look.axis_x(key, marks, wide), look.axis_y(source.metric))], note=note)


def _key(source: PlotSource, look: Look) -> str:
    if look.by:
        return source.check(look.by)
    if any(run.row.section for run in source.runs):
        return SECTION
    return source.varying[0] if source.varying else "state"
