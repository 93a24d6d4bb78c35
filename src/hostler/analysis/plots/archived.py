"""The archive as a plot sees it: its models, with the curves that outlive their runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from hostler.analysis.plots.source import PlotRun, PlotSource, PlottedCurve, newest
from hostler.analysis.stack import SegmentStack
from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records.checkpoint import archive
from hostler.records.checkpoint.archive import ArchivedRun, ArchiveTerms
from hostler.records.rows import Row
from hostler.spec.params import flatten
from hostler.spec.states import DONE
from hostler.store import NotFound, Store


def archived(store: Store, *, metric: str | None = None, goal: str | None = None) -> PlotSource | None:
    """Models of the archive; None if it does not exist or none has the metric."""
    held = archive.terms(store)
    if held is None:
        return None
    terms = replace(held, metric=metric or held.metric, goal=goal or held.goal)
    kept = archive.kept(archive.entries(store, terms), terms)
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
        stack = SegmentStack(one.sweep, [archive.curves(store, one.run)], [0])
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
