"""Brings what a run by hand makes into the store, from threads of its own: points, checkpoints, the end.

The training never waits for the store: what cannot be delivered lies on the local disk, and goes with the
next try, or with the next start of the script on this machine. A heartbeat goes on beside every upload.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler.errors import DamagedError, Fenced, NewerFormatError
from hostler.records import heartbeats
from hostler.records.body import Record
from hostler.records.interest import Interest
from hostler.records.metrics import MetricWriter, add_up, summary
from hostler.records.points import Point, PointFolder
from hostler.sdk.alone.route import Route

if TYPE_CHECKING:
    from hostler.sdk.alone.shipment import Shipment

FIRST = 0.2  # seconds before a thread first does its work: a run that is over by then needs none


class Courier:
    def __init__(
        self,
        route: Route,
        writer: MetricWriter,
        *,
        say: Callable[[str], None],
        totals: Mapping[str, Mapping[str, float]] | None = None,
        known: Iterable[Point] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._r, self._writer, self._say, self._clock = route, writer, say, clock
        self._points = PointFolder(route.folder.metrics)
        self._known = {(point.time, point.step) for point in known}  # in the store already
        self._held: list[Point] = []  # read, and not known to be in the store
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._sequence = 0
        self._begun = self._flushed = clock()
        self._interest = Interest()
        self._shipment: Shipment | None = None
        self._said: set[str] = set()  # what was wrong with the store
        self.totals = {name: dict(row) for name, row in (totals or {}).items()}
        self.shown: Callable[[list[Point]], None] = lambda points: None  # sees points as they come
        self.step = 0
        self.stop: str | None = None
        self.fenced = False

    def start(self) -> None:
        """The first beat may come a moment late: a claim without one is a heartbeat that stands still."""
        timing = self._r.timing
        for work, every in ((self._beat, timing.beat), (self._carry, min(0.5, timing.flush))):
            thread = threading.Thread(
                target=self._repeat, args=(work, every), name="hostler-courier", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def halt(self) -> None:
        """No thread does anything after this."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def beat(self) -> None:
        """One heartbeat, and one look at what others appended to the run's log."""
        self._sequence += 1
        run, only = self._r.attempt.key.run, [self._r.attempt.key.sweep]
        last = {name: row["last"] for name, row in list(self.totals.items())[:50]}
        facts = {"attempt": self._r.attempt.number, "step": self.step, "metrics": last}
        heartbeats.beat(
            self._r.store,
            self._r.session,
            self._sequence,
            {"by_hand": True, "only": only, "runs": {run: facts}},
        )
        try:
            self.stop = self._r.attempt.look() or self.stop
        except (Fenced, DamagedError, NewerFormatError):
            self.fenced, self.stop = True, self.stop or "taken over"
        self._interest.look(self._r.store, self._clock())

    def silence(self) -> None:
        """The heartbeat goes, where there was one."""
        if self._sequence:
            heartbeats.silence(self._r.store, self._r.session)

    def carry(self, *, last: bool = False) -> None:
        """Points and the newest checkpoint that the store has not yet."""
        with self._lock:
            self._read()
            if self._held and (last or self._clock() - self._flushed >= self._interval()):
                self.flush()
            if self._shipment or _holds(self._r.folder.checkpoint):
                self._ships().checkpoint(last=last)

    def flush(self) -> None:
        """All points logged until now into the store."""
        with self._lock:
            self._flushed = self._clock()
            self._read()
            if self._held:
                self._writer.write(self._held)
                self._held = []

    def pack(self) -> None:
        """One object of all points: nothing more will come."""
        with self._lock:
            self._writer.pack()

    def outputs(self) -> None:
        if _holds(self._r.folder.output):
            self._ships().outputs()

    def _ships(self) -> Shipment:
        if self._shipment is None:
            from hostler.sdk.alone.shipment import Shipment  # a run that only logs needs nothing of it

            self._shipment = Shipment(self._r, self._facts, self._say, self._clock)
        return self._shipment

    def _facts(self, record: Mapping[str, Any]) -> Record:
        """What the checkpoint covers, once it is in the store."""
        self.flush()
        points = record.get("points")
        alone = record.get("world", 1) == 1 and points is not None
        position = min(int(points), self._writer.position) if alone else self._writer.position  # type: ignore[arg-type]
        facts: Record = {"position": position, "metric_step": self.step, "totals": self.totals}
        if record.get("finished") is not None:
            facts |= {"finished": True, "result": {"summary": record["finished"], "metrics": self.totals}}
        return facts

    def _read(self) -> None:
        while points := self._points.read():
            self._held += [p for p in points if (p.time, p.step) not in self._known]
            self.shown(points)
            self.totals = add_up(self.totals, summary(points))
            self.step = max(self.step, max(point.step for point in points))

    def _repeat(self, work: Callable[[], None], every: float) -> None:
        wait = min(FIRST, every)
        while not self._over.wait(wait):
            work()
            wait = every

    def _beat(self) -> None:
        self._try(self.beat)

    def _carry(self) -> None:
        if not self.fenced:
            self._try(self.carry)

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Fenced:
            self.fenced, self.stop = True, self.stop or "taken over"
        except Exception as error:  # the store's trouble, or the disk's: said once, and tried again
            if str(error) not in self._said:
                self._said.add(str(error))
                self._say(f"{self._r.store.url}: {error}; the training goes on, and it is tried again")

    def _interval(self) -> float:
        age = self._clock() - self._begun
        usual = min(self._r.timing.flush_max, max(self._r.timing.flush, age / 200))
        return min(usual, self._r.timing.beat) if self._interest.shown else usual


def _holds(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return any(True for _ in entries)
