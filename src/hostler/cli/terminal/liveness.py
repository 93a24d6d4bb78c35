"""Tells whether a worker is still at a run that is followed, and has another started where nobody is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from hostler.errors import HostlerError
from hostler.records.run.log import RunKey
from hostler.records.run.state import RunState
from hostler.spec.states import RUNNING
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.backends.base import Backend, WorkerInfo
    from hostler.spec.project import Fleet

QUIET = 3.0  # seconds without news before anybody asks, and between two askings
LONGEST = 30.0  # and between two askings while our worker waits in a queue
TAIL = 8  # lines of the worker's own log that are shown


class Liveness:
    """Tells whether a worker is still at a run that is being followed.

    While anything comes (a log entry, a line) nobody asks. After some silence: a worker of ours that lives,
    or any worker with a fresh heartbeat that serves the run, is enough to go on. If nobody is left of those
    who held it, and we can, another worker is started. Nobody at all means that following would never end,
    which is said, with what our worker said last and what to type.
    """

    def __init__(
        self,
        store: Store,
        key: RunKey,
        engine: Backend | None = None,
        fleet: Fleet | None = None,
        workers: Sequence[WorkerInfo] = (),
        start: Callable[[], Sequence[WorkerInfo]] | None = None,
    ) -> None:
        self._store, self._key, self._engine, self._fleet = store, key, engine, fleet
        self._workers, self._start = workers, start
        self._head, self._told, self._waits = -1, "", list[str]()
        self._quiet = QUIET
        self._asked: float | None = None  # the last news, or the last asking

    def look(self, state: RunState, news: bool, now: float) -> str:
        """'' while there is reason to wait; else what to say before leaving."""
        if news or state.head != self._head or self._asked is None:
            self._head, self._asked = state.head, now
            self._quiet = QUIET
        if now - self._asked < self._quiet:
            return ""
        self._asked = now
        if self._ours_live():
            self._quiet = min(self._quiet * 1.5, LONGEST) if self._waits else QUIET
            self._tell_of_trouble()
            return ""
        if self._held(state):
            return ""
        if self._start is None or state.state != RUNNING:
            return self._words(state)
        click.echo("hostler: its worker is lost; starting another", err=True)
        self._workers = self._start()
        return ""

    def _ours_live(self) -> bool:
        if self._engine is None or self._fleet is None:
            return False
        try:
            worker_infos = self._engine.list(self._fleet)
        except HostlerError:  # an engine that does not answer has not ended anything
            return True
        living = [worker for worker in worker_infos if worker.alive and self._is_ours(worker)]
        self._waits = [worker.detail for worker in living if worker.detail.startswith("waits")]
        return bool(living)

    def _is_ours(self, worker: WorkerInfo) -> bool:
        started = {name for worker_info in self._workers for name in (worker_info.id, worker_info.launch)} - {
            ""
        }
        return bool(started & {worker.id, worker.launch}) or self._key.sweep in worker.sweeps

    def _tell_of_trouble(self) -> None:
        """Why it waits in a queue; what keeps it from the store can only be read in its own log."""
        if self._waits:
            if self._waits[0] != self._told:
                self._told = self._waits[0]
                click.echo(f"hostler: its worker {self._told}", err=True)
            return
        lines = self._last_words()
        if lines and lines[-1].endswith("; trying again") and lines[-1] != self._told:
            self._told = lines[-1]
            click.echo(f"hostler: the worker says: {self._told}", err=True)

    def _held(self, state: RunState) -> bool:
        from hostler.records.launch import serving  # only after some silence

        now = serving.look(self._store)
        return state.session in now.fresh or now.serves(self._key.sweep)

    def _words(self, state: RunState) -> str:
        from hostler.cli.terminal.hints import command_for  # only if nobody is there

        lines = [
            f"hostler: nobody works on {self._key.sweep} ({state.state}, no worker gives a sign of life)"
        ]
        said = self._last_words()
        if said:
            lines += ["  the worker that was started for it said:", *(f"  | {line}" for line in said)]
        lines += [
            f"  → {command_for(self._store, self._key.sweep)}",
            f"  → hostler attach {self._key.sweep}   then follows it again",
        ]
        return "\n".join(lines)

    def _last_words(self) -> list[str]:
        if self._engine is None:
            return []
        text = b"".join(self._engine.logs(worker) for worker in self._workers)
        return [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()][-TAIL:]
