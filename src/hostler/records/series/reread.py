"""Points from the stored output of an ended run, so that nobody has to run it twice for a metric.

They become points of its last attempt, under the number of a writer that no node has, and the run's end is
appended once more with their totals: readers find them like any others. What the run measured by itself
stays as it was. The same reading again changes nothing; killed in between, it is completed by the next.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import Record
from hostler.records.run.attempt import copy_end
from hostler.records.run.entries import restated_end
from hostler.records.run.history import tries
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import fold
from hostler.records.series import metrics
from hostler.records.series.metric_names import NOISE, STEPS, is_metric
from hostler.records.series.metrics import Fragment, FragmentCache
from hostler.records.series.picker import Picker
from hostler.records.series.points import Point, pack
from hostler.spec.job import MetricSource, by_pattern
from hostler.store import NotFound, Store

WRITER = 999_999  # the number of the writer of these points: no node of a gang has it
HEAD = 1 << 20  # bytes of a log in which candidates and samples are looked for
_PAIR = re.compile(  # a name before a number, on one line
    r"(?<![\w.])([A-Za-z]\w+)([ \t]*[:=][ \t]*|[ \t]+)"
    r"([-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?)(?![\w:/]|[.,-]\d)"
)
_ROUNDS = re.compile(rb"(?m)^\[hostler\] goes on from checkpoint \S+ \((\d+) boosting rounds\)$")
_OWN = re.compile(rb"(?m)^\[hostler\] .*$")  # lines of the worker's own


@dataclass(frozen=True)
class Reread:
    """Outcome for one run. `skipped`: why nothing was read."""

    points: int = 0
    names: tuple[str, ...] = ()  # metrics that its output gave
    own: tuple[str, ...] = ()  # metrics in its output that it has by itself
    changed: bool = False
    skipped: str = ""


OPEN = "not ended"
SILENT = "no output"


def reread(store: Store, key: RunKey, source: MetricSource) -> Reread:
    """Read the run's output again, and keep what is found. A copy of another run takes what that one has."""
    run_log = RunLog(store, key).read_on()
    state = fold(run_log.entries)
    if not state.ended or state.end is None:
        return Reread(skipped=OPEN)
    if copied := state.end.get("copy_of"):
        points = _written(FragmentCache().update(store, copied))
        return _restate(store, run_log, state.end, points, Reread(len(points), _names(points)))
    if not _listed(store, key.run):
        return Reread(skipped=SILENT)
    fragments = FragmentCache().update(store, key.run)
    attempts = metrics.lineage(fragments, state.attempt) or [state.attempt]
    by_itself = {
        name
        for fragment in fragments
        if fragment.rank != WRITER and fragment.attempt in attempts
        for point in fragment.points
        for name in point.values
    }
    found = _read(store, key.run, attempts, run_log.entries, source)
    points = [point for one in found if (point := _without(one, by_itself)).values]
    there = [
        fragment for fragment in fragments if fragment.rank == WRITER and fragment.attempt == attempts[-1]
    ]
    before, names = _written(there), _names(points)
    kept = [point for one in before if (point := _without(one, set(names))).values]
    whole = sorted([*kept, *points], key=lambda point: point.step)
    changed = pack(whole) != pack(before)
    if changed:
        _write(store, key.run, attempts[-1], whole)
    told = Reread(len(points), names, tuple(sorted(by_itself & {*_names(found)})), changed)
    return _restate(store, run_log, state.end, whole, told)


def candidates(store: Store, runs: Iterable[str]) -> list[str]:
    """Names of metrics that the output of the first of these runs that has any would give."""
    for run in runs:
        picker, data = Picker(MetricSource()), head(store, run)
        if names := _names(picker.feed(data, 0.0) + picker.close(0.0)):
            return list(names)
    return []


def fitting_pattern(store: Store, runs: Iterable[str]) -> tuple[str, str] | None:
    """A metric that lines of the first of these runs with any seem to hold, and a pattern that finds it in
    them: for lines that are not a tool's."""
    for run in runs:
        data = head(store, run)
        values: dict[tuple[str, str], list[str]] = {}
        for name, sign, value in _PAIR.findall(data.decode("utf-8", "replace")):
            if name.lower() not in STEPS | NOISE:
                values.setdefault((name, sign.strip()), []).append(value)
        for name, sign in sorted(values, key=lambda pair: _unlikeliness(pair[0], values[pair])):
            between = rf"\s*{sign}\s*" if sign else r"\s+"
            pattern = rf"\b{name}{between}(?P<{name}>[-+.\de]*\d)"
            picker = Picker(by_pattern(pattern))
            if picker.feed(data, 0.0) + picker.close(0.0):
                return name, pattern
    return None


def _unlikeliness(name: str, values: Sequence[str]) -> tuple[bool, bool, int]:
    """Least of a metric: by its name, by fractions, by how often it changes."""
    return not is_metric(name, weak=True), not any("." in value for value in values), -len({*values})


def sample(store: Store, run: str, count: int) -> list[str]:
    """Lines of a run's output, those with numbers first."""
    lines = [line.strip() for line in re.split(r"[\r\n]", head(store, run).decode("utf-8", "replace"))]
    lines = list(dict.fromkeys(filter(None, lines)))
    numbers = [line for line in lines if re.search(r"\d", line)]
    return (numbers or lines)[:count]


def head(store: Store, run: str) -> bytes:
    """The first part of a run's output, without lines of the worker's own."""
    pieces, size = list[bytes](), 0
    for _, keys in sorted(_listed(store, run).items()):
        for key, _ in keys:
            if size < HEAD:
                pieces.append(_get(store, key))
                size += len(pieces[-1])
    return b"".join(pieces)


def _read(
    store: Store, run: str, attempts: Sequence[int], entries: Sequence[Record], source: MetricSource
) -> list[Point]:
    """Points of these attempts, each at the moment that its place in the output suggests."""
    listed = _listed(store, run)
    spans = {one.number: (one.started, one.ended or one.started) for one in tries(entries)}
    pieces = list[list[Point]]()
    for attempt in attempts:
        begun, ended = spans.get(attempt, (0.0, 0.0))
        size, at, now = sum(size for _, size in listed.get(attempt, ())), 0, begun
        picker, points, rounds = Picker(source), list[Point](), 0
        before = [point for piece in pieces for point in piece]
        for key, length in listed.get(attempt, ()):
            data = _data(store, key)
            if before and not at:  # the worker says it before the script prints anything
                rounds = int(match[1]) if (match := _ROUNDS.search(data)) else 0
                picker.continue_from(1 + max(point.step for point in before), rounds)
            at += length
            now = begun + (ended - begun) * at / max(1, size)
            points += picker.feed(_OWN.sub(b"", data), now)
        points += picker.close(now)
        pieces.append(_moved_back(points, before) if before and picker.counts_on and not rounds else points)
    return metrics.join(pieces)


def _moved_back(points: list[Point], before: list[Point]) -> list[Point]:
    """Points that were counted on from the end of the output before them, moved to where they repeat it: the
    checkpoint that an attempt goes on from is older than that end. Pure."""
    old: dict[int, dict[str, float]] = {}
    for point in before:
        old.setdefault(point.step, {}).update(point.values)
    last = max(old)
    if not points or points[0].step <= last:
        return points
    for back in range(1, points[0].step - min(old) + 1):
        again = itertools.takewhile((last + back).__ge__, (point.step for point in points))
        if all(_repeats(points[n].values, old.get(step - back, {})) for n, step in enumerate(again)):
            return [Point(point.step - back, point.time, point.values) for point in points]
    return points


def _repeats(values: Mapping[str, float], old: Mapping[str, float]) -> bool:
    return all(repr(old.get(name)) == repr(value) for name, value in values.items())


def _listed(store: Store, run: str) -> dict[int, list[tuple[str, int]]]:
    """attempt → keys and sizes of the output of its first node."""
    found: dict[int, list[tuple[str, int]]] = {}
    for entry in store.list(layout.logs(run)):
        attempt, rank, _ = layout.split_fragment(entry.key) or (0, 1, 0)
        if rank == 0:
            found.setdefault(attempt, []).append((entry.key, entry.size))
    return found


def _get(store: Store, key: str) -> bytes:
    return _OWN.sub(b"", _data(store, key))


def _data(store: Store, key: str) -> bytes:
    try:
        return store.get(key).data
    except NotFound:
        return b""


def _written(fragments: Sequence[Fragment]) -> list[Point]:
    """Points that were read so before: each writing holds all."""
    ours = [fragment for fragment in fragments if fragment.rank == WRITER]
    return list(ours[-1].points) if ours else []


def _write(store: Store, run: str, attempt: int, points: Sequence[Point]) -> None:
    """A fragment in place of those before it."""
    prefix = layout.metric_fragment(run, attempt, WRITER, 0)[:-8]
    old = [entry.key for entry in store.list(prefix)]
    sequence = 1 + max((layout.split_fragment(key) or (0, 0, 0))[2] for key in old) if old else 0
    header = {"token": "", "attempt": attempt, "start": 0, "origin": None, "whole": True}
    store.put(layout.metric_fragment(run, attempt, WRITER, sequence), metrics.fragment(header, pack(points)))
    store.delete(*old)


def _restate(store: Store, run_log: RunLog, end: Record, points: Sequence[Point], told: Reread) -> Reread:
    """Append the end with the totals of these points, unless it has them; whoever was faster wins."""
    before: Mapping[str, Any] = end.get("metrics") or {}
    totals = {**before, **metrics.summary(points)}
    if not points or json.dumps(totals, sort_keys=True) == json.dumps(before, sort_keys=True):
        return told
    step = max(int(end.get("step") or 0), max(point.step for point in points))
    if not run_log.append(restated_end(end, totals, step)):
        return Reread(skipped=OPEN)
    copy_end(store, run_log.key, run_log.head, run_log.entries[-1])
    return Reread(told.points, told.names, told.own, True)


def _names(points: Iterable[Point]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for point in points for name in point.values))


def _without(point: Point, names: set[str]) -> Point:
    values = {name: value for name, value in point.values.items() if name not in names}
    return Point(point.step, point.time, values)
