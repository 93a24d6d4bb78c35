"""What of one sweep is open, from names alone: log minus ends, never the whole sweep per claim.

A run without a log entry has never been touched. One whose end's copy bears the number of its newest
entry has ended. The rest is open, and its log (immutable, so read once) says how.
"""

from __future__ import annotations

from dataclasses import dataclass

from hostler.records import layout
from hostler.records.attempt import copy_end
from hostler.records.log import RunKey, RunLog
from hostler.records.state import RunState, fold
from hostler.spec.job import Job
from hostler.store import Store


@dataclass(frozen=True)
class OpenRun:
    key: RunKey
    state: RunState


class Queue:
    """One sweep as one worker sees it."""

    def __init__(self, store: Store, job: Job) -> None:
        self._store, self.job = store, job
        self._logs: dict[str, RunLog] = {}
        self._first = 0  # all runs before this index had ended when last seen
        self._ids: list[str] = []

    def log(self, run: str) -> RunLog:
        return self._logs.setdefault(run, RunLog(self._store, RunKey(self.job.name, run)))

    def open(self, *, whole: bool = False) -> list[OpenRun]:
        """Runs that have not ended, oldest first. whole: also look again at those seen ended (a person may
        have reopened one)."""
        first = 0 if whole else self._first
        heads = self._heads(layout.logs_of(self.job.name), first)
        ends = self._heads(layout.ends(self.job.name), first)
        ids = self._run_ids()
        found: list[OpenRun] = []
        self._first = first
        for index in range(first, self.job.count):
            run = ids[index]
            head = heads.get(run, 0)
            if head and ends.get(run) == head:
                self._logs.pop(run, None)
                if not found:
                    self._first = index + 1
                continue
            state = self._state(run, head)
            if not state.ended:
                found.append(OpenRun(RunKey(self.job.name, run), state))
        return found

    def _state(self, run: str, head: int) -> RunState:
        run_log = self.log(run).read_to(head)
        state = fold(run_log.entries)
        if state.ended:  # its holder died between the end and the copy
            copy_end(self._store, run_log.key, run_log.head, run_log.entries[-1])
        return state

    def _heads(self, prefix: str, first: int) -> dict[str, int]:
        """run → highest entry number, of runs from index `first` on."""
        heads: dict[str, int] = {}
        for entry in self._store.list(prefix, f"{prefix}{first:07d}" if first else ""):
            run, k = layout.split_log_entry(entry.key)
            heads[run] = max(k, heads.get(run, 0))
        return heads

    def _run_ids(self) -> list[str]:
        if len(self._ids) != self.job.count:
            self._ids = [self.job.run_id(index) for index in range(self.job.count)]
        return self._ids
