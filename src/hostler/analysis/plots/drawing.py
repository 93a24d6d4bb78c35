"""Makes a chart of a store, by the kind of plot.

The archive is a source of its own: its models, with the curves that outlive their runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from hostler.analysis.chosen import Names
from hostler.analysis.plots.chart import Chart
from hostler.analysis.plots.curveplots import archive, best, grid
from hostler.analysis.plots.importance import importance
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.parallel import parallel
from hostler.analysis.plots.progress import completion, cost, trend
from hostler.analysis.plots.results import results
from hostler.analysis.plots.slices import contour, slices
from hostler.analysis.plots.source import PlotRun, PlotSource, PlottedCurve, newest, source
from hostler.analysis.stack import SegmentStack
from hostler.errors import DamagedError, MissingError, NewerFormatError, UsageError
from hostler.records.checkpoint import archive as archives
from hostler.records.checkpoint.archive import ArchivedRun, ArchiveTerms
from hostler.records.packs.packed_store import open_store
from hostler.records.rows import Row
from hostler.spec.nearest import did_you_mean
from hostler.spec.params import flatten
from hostler.spec.states import DONE
from hostler.store import NotFound, Store

Draw = Callable[[PlotSource, Look], Chart]

KINDS: dict[str, tuple[Draw, str]] = {
    "results": (results, "the metric by section, or by any parameter (--by)"),
    "best": (best, "the best run's curve among the others"),
    "grid": (grid, "curves in panels by --row and --column, lines by --legend; repeats averaged, with bands"),
    "parallel": (parallel, "parallel coordinates: an axis for each parameter"),
    "importance": (importance, "the importance of each parameter"),
    "slices": (slices, "the metric along each parameter"),
    "contour": (contour, "the metric over two parameters (--keys A,B)"),
    "trend": (trend, "the best so far, over runs and rounds"),
    "archive": (archive, "curves of the archive, or of the best runs of these sweeps (--top)"),
    "cost": (cost, "cost of runs against their result"),
    "completion": (completion, "the number of runs in each state"),
}


def draw(
    store: str,
    kind: str,
    sweep: Names = None,
    *,
    metric: str | None = None,
    goal: str | None = None,
    best: bool = False,
    **options: Any,
) -> Chart:
    """A chart of the runs of a store. `options` are the fields of `Look`."""
    if kind not in KINDS:
        raise UsageError(
            f"no plot named {kind!r}", hint=did_you_mean(kind, KINDS, f"choose from: {', '.join(KINDS)}")
        )
    opened = open_store(store)
    kept = archived(opened, metric=metric, goal=goal) if kind == "archive" and sweep is None else None
    plot_source = kept or source(opened, sweep, metric=metric, goal=goal, best=best)
    return KINDS[kind][0](plot_source, Look(**options))


def archived(store: Store, *, metric: str | None = None, goal: str | None = None) -> PlotSource | None:
    """Models of the archive; None if it does not exist or none has the metric."""
    held = archives.terms(store)
    if held is None:
        return None
    terms = replace(held, metric=metric or held.metric, goal=goal or held.goal)
    kept = archives.kept(archives.entries(store, terms), terms)
    if not kept:
        return None
    return PlotSource(
        [_seen(run, terms) for run in kept],
        terms.metric,
        terms.goal,
        "archive",
        read=_reader(store, kept, terms.metric),
    )


def _seen(one: ArchivedRun, terms: ArchiveTerms) -> PlotRun:
    record = one.record
    row = Row(
        id=one.run,
        name=f"{one.sweep}/{record['index']}",
        sweep=one.sweep,
        index=int(record["index"]),
        state=DONE,
        params=record["params"],
        metrics=record["values"],
        metric=terms.metric,
        goal=terms.goal,
        judged=one.judged,
    )
    return PlotRun(row, flatten(record["params"]), one.value, int(record.get("round") or 1))


def _reader(
    store: Store, kept: Sequence[ArchivedRun], metric: str
) -> Callable[[Iterable[str], str], Sequence[PlottedCurve]]:
    def read(ids: Iterable[str], x: str) -> Sequence[PlottedCurve]:
        known = {"step", "time", *(name for run in kept for name in run.record["values"])}
        if x not in known:
            raise MissingError(
                f"no archived run has logged {x!r}", hint=f"choose from: {', '.join(sorted(known))}"
            )
        wanted = set(ids)
        curves = (_curve(store, run, metric, x) for run in kept if run.run in wanted)
        return [curve for curve in curves if curve]

    return read


def _curve(store: Store, one: ArchivedRun, metric: str, x: str) -> PlottedCurve | None:
    try:
        stack = SegmentStack(one.sweep, [archives.curves(store, one.run)], [0])
    except (NotFound, DamagedError, NewerFormatError):  # removed right now, or of no use
        return None

    def part(name: str, what: str) -> list[float]:
        return [float(value) for value in stack.curve(name, what)[0]]

    steps, values = part(metric, "steps"), part(metric, "values")
    if x == "step":
        return PlottedCurve(one.run, steps, values)
    if x == "time":
        times = part(metric, "times")
        begun = min(times, default=math.nan)
        return PlottedCurve(one.run, [time - begun for time in times], values)
    others = sorted(zip(part(x, "steps"), part(x, "values"), strict=True), key=lambda pair: pair[0])
    at, of = [step for step, _ in others], [value for _, value in others]
    return PlottedCurve(one.run, [newest(at, of, step) for step in steps], values)
