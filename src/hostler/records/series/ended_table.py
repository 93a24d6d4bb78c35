"""Ended runs of a sweep that stand in its segments, by column: thousands are counted and compared without a
record for each. The facts are those of `Segment.ends`, the values those of `judge`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from heapq import nsmallest
from math import inf
from typing import Any, NamedTuple

from hostler.errors import DamagedError
from hostler.records import layout
from hostler.records.body import Record, taken_apart
from hostler.records.series import packing, segments
from hostler.records.series.segments import Segment
from hostler.spec.job import Objective
from hostler.spec.ranking import judge, part_of
from hostler.spec.states import COUNTED, DONE
from hostler.store import NotFound, Store


class EndedFacts(NamedTuple):
    """An ended run, as far as it is counted."""

    state: str
    seconds: float | None  # of all its attempts
    copy_of: str | None
    code: str | None
    value: float | None  # that it is ranked by; None if it has not logged the metric
    last: float | None  # of that metric
    segment: int


# `EndedFacts._make`, without a call of Python for each of a hundred thousand.
_made: Callable[[tuple[Any, ...]], EndedFacts] = partial(tuple.__new__, EndedFacts)


class EndedTable:
    """run → its facts; who needs all that is known of one asks for its end."""

    def __init__(self, store: Store, sweep: str, by: Objective | None) -> None:
        self._store, self._sweep, self._by = store, sweep, by
        self._ends: dict[int, dict[str, Record]] = {}  # by segment, of those that were asked for
        self.runs: dict[str, EndedFacts] = {}
        self.logged: set[str] = set()  # metrics that those of them which are done have logged

    def fill(self, newest: Mapping[str, int], but: Container[str], say: Callable[[str], None]) -> None:
        """Take in the runs whose newest entry is the end that a segment holds, but for these. A segment that
        is damaged is said, and passed over."""
        for n, segment in packing.each(self._store, self._sweep, say=say):
            try:
                with taken_apart(layout.segment(self._sweep, n)):
                    self._add(n, segment, newest, but)
            except DamagedError as error:
                say(str(error))

    def _add(self, n: int, segment: Segment, newest: Mapping[str, int], but: Container[str]) -> None:
        factses = list(map(_made, _facts(n, segment, self._by)))
        runs, ks = segment.runs, segment.ks
        rows: Sequence[int] = range(segment.rows)
        if [*map(newest.get, runs)] != ks or any(map(but.__contains__, runs)):  # all count in most segments
            pairs = zip(runs, ks, strict=True)
            rows = [i for i, (run, k) in enumerate(pairs) if newest.get(run) == k and run not in but]
            runs, factses = [runs[i] for i in rows], [factses[i] for i in rows]
        self.runs.update(zip(runs, factses, strict=True))
        logged = {name: rows for name, rows in segment.logged().items() if name not in self.logged}
        if logged:
            done = {i for i, facts in zip(rows, factses, strict=True) if facts.state == DONE}
            self.logged.update(name for name, logging in logged.items() if not done.isdisjoint(logging))

    def leading(self, count: int, states: Container[str] = COUNTED) -> list[str]:
        """The best runs in these states, the best first; of equal ones the first. NaN and infinities count
        for nothing."""
        if self._by is None:
            return []
        sign = -1 if self._by.goal == "max" else 1
        ranked = (
            (sign * value, run)  # an id begins with the run's index
            for run, (state, _, _, _, value, _, _) in self.runs.items()
            if value is not None and -inf < value < inf and state in states
        )
        return [run for _, run in nsmallest(count, ranked)]

    def odd(self, states: Container[str] | None = None) -> list[str]:
        """Runs whose last value of the metric is NaN."""
        return [
            run
            for run, (state, _, _, _, _, last, _) in self.runs.items()
            if last != last and (states is None or state in states)  # as NaN alone is
        ]

    def end(self, run: str) -> Record | None:
        """The end of one of them, with all that is known of the metric; None if its segment has gone."""
        n = self.runs[run].segment
        if n not in self._ends:
            self._ends[n] = self._ends_of(layout.segment(self._sweep, n))
        return self._ends[n].get(run)

    def _ends_of(self, key: str) -> dict[str, Record]:
        try:
            segment = segments.decode(self._store.get(key).data, key)
        except (NotFound, DamagedError):
            return {}
        whole = () if self._by is None else (self._by.name,)
        return dict(zip(segment.runs, segment.ends(("last",), whole), strict=True))


def _facts(n: int, segment: Segment, by: Objective | None) -> Iterator[tuple[Any, ...]]:
    """Columns of `EndedFacts`, run by run."""
    none = [None] * segment.rows
    took = [one or other for one, other in zip(segment.fact("total"), segment.fact("seconds"), strict=True)]
    metric = by if by and not by.name.startswith("system/") else None  # those are not metrics of an end
    last = segment.total(metric.name, "last") if metric else none
    values = _values(segment, metric) if metric else none
    facts = (segment.fact("state"), took, segment.fact("copy_of"), segment.fact("code"))
    return zip(*facts, values, last, [n] * segment.rows, strict=True)


def _values(segment: Segment, by: Objective) -> list[float | None]:
    if part := part_of(by, segment.header["end"].keys()):
        return segment.total(by.name, part)
    judged = (judge(end, by) for end in segment.ends(("last",), (by.name,)))
    return [one.value if one else None for one in judged]
