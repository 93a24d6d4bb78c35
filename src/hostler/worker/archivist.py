"""The archivist enters good runs that end here into the archive, where the project has one.

What it has seen in the archive only gets better, so a run that was beaten by that needs no further look.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from hostler.records.checkpoint import archive
from hostler.records.checkpoint.archive import ArchivedRun, ArchiveTerms
from hostler.records.run.attempt import Attempt
from hostler.spec.units import show_number
from hostler.store import Store

LOOK = 60.0  # seconds for which the terms are taken to hold


@dataclass
class Archivist:
    """Safe to use from several threads: one enters at a time."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _looked: float = -math.inf
    _terms: ArchiveTerms | None = None
    _there: list[ArchivedRun] = field(default_factory=list)

    def take(self, store: Store, attempt: Attempt, now: float, say: Callable[[str], None]) -> None:
        ended = attempt.ended
        if ended is None:
            return
        with self._lock:
            terms = self._hold(store, now)
            run = archive.candidate(attempt.key, *ended, terms) if terms else None
            if terms is None or run is None or not archive.would_stay(run, self._there, terms):
                return
            self._there = archive.entries(store, terms)
            if archive.would_stay(run, self._there, terms):
                archive.enter(store, run, terms, say)
                which = f" ({run.judged.shown})" if run.judged else ""
                say(f"{run.run}: entered the archive with {terms.metric}={show_number(run.value)}{which}")
                self._tidy(store, terms)

    def _hold(self, store: Store, now: float) -> ArchiveTerms | None:
        if now - self._looked >= LOOK:
            terms = archive.terms(store)
            if terms != self._terms:
                self._terms, self._there = terms, []
            self._looked = now
        return self._terms

    def _tidy(self, store: Store, terms: ArchiveTerms) -> None:
        self._there = archive.entries(store, terms)
        for run in archive.beyond(self._there, terms):
            archive.remove(store, run.run)
        self._there = archive.kept(self._there, terms)
