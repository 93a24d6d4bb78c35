"""Brings what a run by hand makes into the store, from threads of its own: points, checkpoints, the end.

The training never waits for the store: what cannot be delivered lies on the local disk, and goes with the
next try, or with the next start of the script on this machine. A heartbeat goes on beside every upload.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hostler.errors import DamagedError, Fenced, HostlerError, NewerFormatError
from hostler.records import checkpoints, heartbeats, outputs, saved_folder
from hostler.records.attempt import Attempt
from hostler.records.body import Record
from hostler.records.checkpoints import Place
from hostler.records.handoff import Handoff
from hostler.records.metrics import MetricWriter, add_up, summary
from hostler.records.parts import Sent
from hostler.records.points import Point, PointFolder
from hostler.records.saved_folder import Mark
from hostler.sdk.alone.parcel import own_files, packed
from hostler.settings import Timing
from hostler.store import Store

FIRST = 0.2  # seconds before a thread first does its work: a run that is over by then needs none
AGAIN = 100  # checkpoints of one step that can be told apart by their number in the store


@dataclass(frozen=True)
class Route:
    """From where to where."""

    store: Store
    attempt: Attempt
    folder: Handoff
    session: str
    timing: Timing
    keep: int = 2


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
        self._sent: Mark | None = None
        self._sending: dict[Place, Sent] = {}  # what of an upload that broke off is in the store
        self._said: set[str] = set()  # what was wrong with the store
        self.totals = {name: dict(row) for name, row in (totals or {}).items()}
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
        run = self._r.attempt.key.run
        last = {name: row["last"] for name, row in list(self.totals.items())[:50]}
        facts = {"attempt": self._r.attempt.number, "step": self.step, "metrics": last}
        heartbeats.beat(
            self._r.store, self._r.session, self._sequence, {"by_hand": True, "runs": {run: facts}}
        )
        try:
            self.stop = self._r.attempt.look() or self.stop
        except (Fenced, DamagedError, NewerFormatError):
            self.fenced, self.stop = True, self.stop or "taken over"

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
            self._checkpoint(last=last)

    def flush(self) -> None:
        """All points logged until now into the store."""
        with self._lock:
            self._flushed = self._clock()
            self._read()
            if self._held:
                self._writer.write(self._held)
                self._held = []

    def outputs(self) -> None:
        r = self._r
        outputs.keep(r.store, r.attempt, r.folder, (), r.attempt.guard)

    def _checkpoint(self, *, last: bool) -> None:
        marks = saved_folder.committed(self._r.folder.checkpoint)
        newest = marks[0] if marks else None
        if newest == self._sent and not (last and newest is None and own_files(self._r.folder.checkpoint)):
            return
        if newest is not None and not self._is_there(newest):
            self._upload(newest)
        elif newest is None and last:
            self._upload(None)
        self._sent = newest

    def _is_there(self, mark: Mark) -> bool:
        run = self._r.attempt.key.run
        return place_of(self._r.attempt.number, mark) in checkpoints.committed(self._r.store, run)

    def _upload(self, mark: Mark | None) -> None:
        r = self._r
        run, folder = r.attempt.key.run, r.folder.checkpoint
        with packed(folder, mark) as staging:
            if staging is None:
                raise HostlerError("the checkpoint changed while it was taken")
            record = saved_folder.read(folder, mark).record if mark else {}
            place = place_of(r.attempt.number, mark)
            sent = self._sending.setdefault(place, set())
            checkpoints.save(r.store, run, place, staging, lambda: self._facts(record), r.attempt.guard, sent)
        self._sending.clear()
        r.attempt.guard()
        checkpoints.retain(r.store, run, r.attempt.number, r.keep)

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
        return min(self._r.timing.flush_max, max(self._r.timing.flush, age / 200))


def place_of(attempt: int, mark: Mark | None) -> Place:
    """Where a checkpoint lies in the store."""
    return Place(attempt, mark.step * AGAIN + mark.again if mark else 0)
