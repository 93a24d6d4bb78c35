"""The queue of a sweep: its open runs, from names alone: log minus ends, never the whole sweep per claim.

A run without a log entry has never been touched: a glance at the names finds some, and what it found is
good for several claims. One whose end's copy bears the number of its newest entry has ended. The rest is
open, and its log (immutable, so read once) says how.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.run.attempt import copy_end
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.records.sweep.journal import Journal
from hostler.spec.job import Job
from hostler.spec.spans import Spans
from hostler.spec.states import STOPPED
from hostler.store import Store

BLOCK = 250  # so many ended runs in a row are worth another request to pass them over
AHEAD = 1000  # runs that nobody has touched which one look brings: a sweep may have millions


@dataclass(frozen=True)
class OpenRun:
    key: RunKey
    state: RunState


class Queue:
    """A sweep as a worker sees it."""

    def __init__(self, store: Store, job: Job, outside: Spans | None = None) -> None:
        self._store, self.job = store, job
        self.journal = Journal(store, job.name, job.journal_from) if job.search else None
        self._outside = job.dropped if outside is None else outside  # indices that are not for this worker
        self._logs: dict[str, RunLog] = {}
        self._spans = [(0, job.count)]  # indices from, to: what lies between had ended when last seen
        self.damaged: dict[str, str] = {}  # run → why its log cannot be read: nobody may take it
        self._untouched = 0  # the first index that had no log entry at the last glance
        self.has_open = False  # whether the last look at open runs found any
        # Entries of all logs, if the last look at all runs found every one of them ended.
        self.entries_when_over: int | None = None
        self._of_all = outside is None  # its runs are for this worker, but for those that an edit dropped
        self.is_narrowed = False  # whether a look at all runs has left out those that had ended

    def glance(self, size: int, start: int = 0) -> list[int]:
        """The first `size` runs from index `start` on that nobody has ever touched, in a request or two. What
        had ended before all that was open at the last look at all runs is passed over."""
        first_open = self._spans[0][0] if self._spans else self.job.count
        touched, first, dropped = set[int](), max(start, self._untouched, first_open), self._outside
        before = dropped.rank(first)
        for run, _ in self._names(layout.logs_of(self.job.name), first):
            index = int(run[:7])
            if index - first - len(touched) - (dropped.rank(index) - before) >= size:
                break
            if index not in dropped:
                touched.add(index)
        indices = range(first, self.job.count)
        free = (index for index in indices if index not in touched and index not in dropped)
        found = list(islice(free, size))
        if start <= self._untouched:
            self._untouched = found[0] if found else self.job.count
        return found

    def share(self, rank: int, of: int, start: int, stop: int) -> list[int]:
        """Indices from start to stop that are a worker's share, touched or not: no request."""
        first = start + (rank - start) % of
        return [index for index in range(first, min(stop, self.job.count), of) if index not in self._outside]

    def grow(self, *, read: bool = True) -> None:
        """Take in what a search that learns has added; `read`: by others, too."""
        if self.journal is None:
            return
        entries = self.journal.read_on() if read else self.journal.entries
        before = self.job.count
        if len(entries) > len(self.job.runs):
            self.job = replace(self.job, runs=tuple(entry.params for entry in entries))
            self._spans = _spans(
                [*(i for span in self._spans for i in range(*span)), *range(before, self.job.count)]
            )

    def run(self, index: int) -> OpenRun:
        """A run as a glance sees it: untouched."""
        return OpenRun(RunKey(self.job.name, self.job.run_id(index)), RunState())

    def log(self, run: str) -> RunLog:
        return self._logs.setdefault(run, RunLog(self._store, RunKey(self.job.name, run)))

    def open(self, *, whole: bool = False, trusting: bool = False) -> list[OpenRun]:
        """Runs that have not ended, oldest first; of those nobody has touched, the first few. whole: also
        look again at those seen ended (a person may have reopened one). trusting: whoever has a copy of an
        end counts as ended, its log is not listed."""
        spans = [(0, self.job.count)] if whole else self._spans
        ends = self._heads(layout.ends(self.job.name), spans)
        if trusting:
            over = {int(run[:7]) for run, k in ends.items() if not self._reopened(run, k)}
            spans = _spans(i for span in spans for i in range(*span) if i not in over)
        heads = self._heads(layout.logs_of(self.job.name), spans)
        touched: dict[int, RunState] = {}
        known: dict[int, OpenRun] = {}
        for run, head in heads.items():
            key = RunKey(self.job.name, run)
            state = self._touched(run, head, ends.get(run))
            touched[key.index] = state
            if not state.ended:
                known[key.index] = OpenRun(key, state)
        found = self._opened(spans, touched, known)
        self.has_open = bool(found)
        if whole:
            is_over = self._of_all and not found and not trusting
            self.entries_when_over = sum(heads.values()) if is_over else None
        return found

    def _opened(
        self, spans: list[tuple[int, int]], touched: Container[int], known: dict[int, OpenRun]
    ) -> list[OpenRun]:
        """Runs known to be open and the first untouched ones, by index; spans are narrowed to them all."""
        dropped, ahead = self._outside, [AHEAD]
        runs: list[OpenRun] = []

        def still_open() -> Iterator[int]:
            for index in (index for span in spans for index in range(*span)):
                if index in known and not self._is_anothers(index):
                    runs.append(known[index])
                elif index in touched or index in dropped:
                    continue
                elif ahead[0]:
                    ahead[0] -= 1
                    runs.append(self.run(index))
                yield index

        self._spans, self.is_narrowed = _spans(still_open()), True
        return runs

    def _is_anothers(self, index: int) -> bool:
        """In a section that this worker does not serve."""
        return index in self._outside and index not in self.job.dropped

    def _reopened(self, run: str, end: int) -> bool:
        """Whether its log is known to go on after this end."""
        known = self._logs.get(run)
        return known is not None and known.head > end

    def _touched(self, run: str, head: int, end: int | None) -> RunState:
        if end == head:
            self._logs.pop(run, None)
            return _OVER
        return self._state(run, head)

    def _state(self, run: str, head: int) -> RunState:
        try:
            run_log = self.log(run).read_to(head)
        except (DamagedError, NewerFormatError) as error:
            self.damaged[run] = str(error)
            return _OVER
        self.damaged.pop(run, None)
        state = fold(run_log.entries)
        if state.ended:  # its holder died between the end and the copy
            copy_end(self._store, run_log.key, run_log.head, run_log.entries[-1])
        return state

    def _heads(self, prefix: str, spans: list[tuple[int, int]]) -> dict[str, int]:
        """run → highest entry number, of runs in these spans."""
        heads: dict[str, int] = {}
        for first, stop in spans:
            for run, k in self._names(prefix, first):
                if int(run[:7]) >= stop:
                    break
                heads[run] = max(k, heads.get(run, 0))
        return heads

    def _names(self, prefix: str, first: int) -> Iterator[tuple[str, int]]:
        for entry in self._store.list(prefix, f"{prefix}{first:07d}" if first else ""):
            if layout.is_log_entry(entry.key):
                yield layout.split_log_entry(entry.key)


_OVER = RunState(state=STOPPED)  # ended, one way or another, or not to be touched


def _spans(open_indices: Iterable[int]) -> list[tuple[int, int]]:
    """Spans that hold all of these, which are in order, and no long block without any."""
    spans: list[tuple[int, int]] = []
    for index in open_indices:
        if spans and index - spans[-1][1] < BLOCK:
            spans[-1] = (spans[-1][0], index + 1)
        else:
            spans.append((index, index + 1))
    return spans
