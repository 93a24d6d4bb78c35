"""Importance of parameters: the share of a metric's variance that each one alone explains.

Runs are put into groups by the parameter (numbers into at most eight of equal count); the share is the
variance between groups over all variance, less what groups of chance would explain. It sees no parameter
that matters only together with another. Pages, plots and the report judge by the same runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from hostler.analysis.plots.chart import Bars, Chart, Panel, empty
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.source import PlotRun, PlotSource, groups, positions
from hostler.spec.states import DONE

GROUPS = 8
LEAST = 4  # runs
ENOUGH = 8  # whole runs by which parameters are judged alone


def importance(source: PlotSource, look: Look) -> Chart:
    title = f"Importance of parameters for {source.label}"
    shares = importances(source)
    if not shares:
        few = f"needs {LEAST} finished runs that differ in a parameter"
        return empty(title, few if source.valued or not source.runs else source.why_none)
    ordered = sorted(shares.items(), key=lambda one: one[1])
    bars = Bars([k for k, _ in ordered], [v for _, v in ordered], "", texts=[f"{v:.0%}" for _, v in ordered])
    note = "share of the variance that each parameter alone explains"
    if (count := len(runs_compared(source))) < len(source.valued):
        note += f", over {count} whole runs"
    axis = look.axis_x("share of variance")
    return Chart(title, [Panel([bars], axis)], note=note, legend=False)


def importances(source: PlotSource) -> dict[str, float]:
    """Parameter → share between 0 and 1. Pure."""
    runs = runs_compared(source)
    if len(runs) < LEAST:
        return {}
    return {key: share(runs, key) for key in source.varying}


def runs_compared(source: PlotSource) -> list[PlotRun]:
    """Runs by which parameters are judged: the whole ones, since one that was pruned or goes on has another
    value by its length alone; all, as long as those are few."""
    whole = [run for run in source.valued if run.row.state == DONE]
    return whole if len(whole) >= ENOUGH else source.valued


def share(runs: Sequence[PlotRun], key: str) -> float:
    parts = [[run.value for run in part] for part in _parts(runs, key)]
    values = [v for part in parts for v in part]
    mean = fmean(values)
    total = sum((v - mean) ** 2 for v in values)
    if total == 0 or len(parts) < 2 or len(values) <= len(parts):
        return 0.0
    means = [fmean(part) for part in parts]
    within = sum((v - own) ** 2 for part, own in zip(parts, means, strict=True) for v in part)
    explained = 1 - (within / (len(values) - len(parts))) / (total / (len(values) - 1))
    return max(0.0, explained)


def _parts(runs: Sequence[PlotRun], key: str) -> list[list[PlotRun]]:
    places, marks = positions(runs, key)
    if marks or len(set(places)) <= GROUPS:
        return [part for _, part in groups(runs, key)]
    ordered = [run for _, run in sorted(zip(places, runs, strict=True), key=lambda one: one[0])]
    count = max(2, min(GROUPS, len(runs) // 2))
    bounds = [n * len(ordered) // count for n in range(count + 1)]
    return [ordered[a:b] for a, b in pairwise(bounds)]
