"""The workers that were started for one run, and what to do when they are gone before it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import click

from hostler import settings
from hostler.backends.base import WorkerInfo
from hostler.cli import output
from hostler.cli.launch import Launcher
from hostler.records import control
from hostler.records.log import RunKey
from hostler.records.project import agreed
from hostler.records.state import QUEUED, RunState
from hostler.store import Store

EVERY = 1.0  # seconds between two looks at the workers
LINES = 5  # of a worker's log, shown when it has gone


class Crew:
    def __init__(
        self, store: Store, launcher: Launcher, key: RunKey, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._launcher, self._key, self._clock = store, launcher, key, clock
        self._workers: Sequence[WorkerInfo] = ()
        self._looked = clock()
        self._stale_since: float | None = None
        self._gone_at: int | None = None  # the log's head when all were seen gone

    def start(self) -> None:
        self._workers = self._launcher.start([self._key.sweep])
        self._gone_at = self._stale_since = None

    def look(self, state: RunState) -> str:
        """Why nobody will run it; '' while somebody may. A lost holder's run gets another worker."""
        if self._clock() - self._looked < EVERY:
            return ""
        self._looked = self._clock()
        if self._alive():
            return ""
        if state.state != QUEUED:
            self._replace_if_lost()
            return ""
        if self._gone_at != state.head:  # they may have left just before it was queued again: look twice
            self._gone_at = state.head
            return ""
        return self._last_words()

    def _alive(self) -> bool:
        mine = {worker.id for worker in self._workers}
        return any(w.alive and w.id in mine for w in self._launcher.engine.list(self._launcher.fleet))

    def _replace_if_lost(self) -> None:
        """A machine that slept wakes with an old heartbeat, so one old look is not enough."""
        if not any(row.stale for row in output.rows_of(self._store, [self._key])):
            self._stale_since = None
            return
        now = self._clock()
        self._stale_since = self._stale_since or now
        if now - self._stale_since >= agreed(self._store, settings.timing()).lease / 4:
            click.echo("hostler: its worker is lost; starting another", err=True)
            control.retry(self._store, self._key, by="its follower", lost=True)
            self.start()

    def _last_words(self) -> str:
        logs = [self._launcher.engine.logs(worker) for worker in self._workers]
        lines = [line for log in logs for line in log.decode("utf-8", "replace").splitlines() if line.strip()]
        return "; ".join(lines[-LINES:]) or "its worker ended without a word"
