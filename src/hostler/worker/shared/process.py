"""A process shared by several runs: each is prepared by itself, the last to come starts it.

It waits as long as runs keep coming; a run that comes after its start is given back. Nothing else of a run
knows of it: claims, folders, checkpoints and ends are each run's. Their folders are removed when all have
left its process, as that works in one of them. A process that each has left by itself is let go, and may be
kept for others (`kept.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import HostlerError
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.records.run.state import RunState
from hostler.spec import together
from hostler.spec.job import Job
from hostler.worker.process.process import Process
from hostler.worker.shared.slot import SharedSlot, SlotLooks

PATIENCE = 30.0  # seconds that those who are ready wait for the next one


class Missed(Exception):
    """The others have gone without it."""


@dataclass(frozen=True)
class _Passenger:
    argv: Sequence[str]
    given: Mapping[str, Any]  # cwd, env, folder, log

    def record(self) -> dict[str, Any]:
        own = {k: v for k, v in self.given["env"].items() if k.startswith("HOSTLER_")}
        return {"argv": list(self.argv), "cwd": str(self.given["cwd"]), "env": own}

    @property
    def has_left(self) -> bool:
        """Whether it has said so itself."""
        return Handoff(self.given["folder"]).seat.exists()


class SharedProcess:
    """All methods may be called from several threads."""

    def __init__(
        self,
        runs: Iterable[str],
        folder: Path,
        start: Callable[..., Process],
        sweep: Callable[[Path], None],
        limit: int | None = None,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        let_go: Callable[[Process], None] = Process.close,
    ) -> None:
        """`sweep` has a folder removed. `limit`: so many are known to go together, at most. `let_go`: what is
        done with a process that each of them has left."""
        self._limit, self._let_go = limit, let_go
        self._folder, self._start, self._sweep, self._patience = folder, start, sweep, patience
        self._clock, self._came = clock, clock()
        self._awaited = set(runs)
        self._here: dict[str, _Passenger] = {}
        self._aboard: set[str] = set()
        self._open = set(self._awaited)  # who may still need a folder
        self._process: Process | None = None
        self._looks: SlotLooks | None = None
        self._departed, self._empty = False, False
        self._error: HostlerError | OSError | None = None
        self._folders = [folder]
        self._changed = threading.Condition()

    def board(self, run: str, argv: Sequence[str], **given: Any) -> SharedSlot:
        """This run is ready: its slot, once the process has started. Missed if that has gone."""
        with self._changed:
            if self._departed:
                raise Missed
            self._awaited.discard(run)
            self._here[run], self._came = _Passenger(argv, given), self._clock()
            self._changed.notify_all()
            while not self._departed and self._awaited and (remaining := self._left()) > 0:
                self._changed.wait(remaining)
            self._depart()
            if self._error is not None:
                raise self._error
            assert self._process is not None
            log, others = self._folder / "output.log", len(self._here) - 1
            assert self._looks is not None
            return SharedSlot(
                self._process, Handoff(given["folder"]), log, others, lambda: self._leave(run), self._looks
            )

    def _left(self) -> float:
        """Seconds in which another one has to come."""
        return self._came + self._patience - self._clock()

    @property
    def over(self) -> bool:
        """Whether its process has come and gone: whoever was in it concludes."""
        with self._changed:
            return self._process is not None and (self._empty or self._process.poll() is not None)

    def quit(self, run: str, folder: Path) -> None:
        """The run is over for this worker, or never came."""
        with self._changed:
            self._awaited.discard(run)
            self._open.discard(run)
            self._folders.append(folder)
            self._changed.notify_all()
        self._leave(run)
        with self._changed:
            if not self._open:
                for path in self._folders:
                    self._sweep(path)
                self._folders = []

    def _leave(self, run: str) -> None:
        """The last one closes the door: what is left of the process goes, unless each has left it well."""
        with self._changed:
            self._aboard.discard(run)
            if not self._departed or self._aboard or self._empty:
                return
            self._empty, process = True, self._process
        if process is not None:
            well = all(passenger.has_left for passenger in self._here.values())
            self._let_go(process) if well else process.close()

    def _depart(self) -> None:
        if self._departed:
            return
        self._departed, self._aboard = True, set(self._here)
        runs = sorted(self._here)
        first, path = self._here[runs[0]], self._folder / "seats.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handoff.write(path, {"seats": [self._here[run].record() for run in runs], "limit": self._limit})
            own = {
                "env": {**first.given["env"], env.SEATS: str(path)},
                "folder": self._folder,
                "log": self._folder / "output.log",
            }
            self._process = self._start(first.argv, **{**first.given, **own})
            self._looks = SlotLooks(self._process)
        except (HostlerError, OSError) as error:
            self._error = error
        self._changed.notify_all()


@dataclass
class SharingLimits:
    """How many runs may share a process here: by what was submitted, and by what processes have said since.

    A run that has failed goes alone: whatever is wrong with it must not be the others' trouble twice. A run
    that its process rejected goes alone, or with fewer.
    """

    wanted: bool = field(default_factory=env.together)
    _alone: set[str] = field(default_factory=set)  # runs
    _limits: dict[str, int] = field(default_factory=dict)  # key → how many went

    def limit(self, job: Job, index: int, run: str, state: RunState) -> int:
        """How many may share its process, itself counted; 1: it has one of its own."""
        if not self.wanted or run in self._alone or state.tally.failures:
            return 1
        most = together.limit_of(job, index)
        return most if most < 2 else min(most, self._limits.get(together.key_of(job, index), most))

    def heed(self, job: Job, index: int, run: str, said: Mapping[str, Any]) -> None:
        """Note the reason a shared process rejected a run."""
        if said.get("alone"):
            self._alone.add(run)
        if said.get("limit"):
            key = together.key_of(job, index)
            self._limits[key] = min(int(said["limit"]), self._limits.get(key, int(said["limit"])))
