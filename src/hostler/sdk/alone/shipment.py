"""The newest checkpoint of a run by hand, and what it left, on their way to the store.

Loaded when there is something to ship: a run that only logs has nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hostler.errors import HostlerError
from hostler.records import checkpoints, outputs, saved_folder
from hostler.records.body import Record
from hostler.records.checkpoints import Place
from hostler.records.parts import Sent
from hostler.records.saved_folder import Mark
from hostler.sdk.alone.parcel import own_files, packed
from hostler.sdk.alone.route import Route

AGAIN = 100  # checkpoints of one step that can be told apart by their number in the store


class Shipment:
    """`covered` brings the metrics into the store and says what a checkpoint with this record covers."""

    def __init__(
        self,
        route: Route,
        covered: Callable[[Mapping[str, Any]], Record],
        say: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._r, self._covered, self._say, self._clock = route, covered, say, clock
        self._slow = False  # said of the store that it is
        self._sent: Mark | None = None
        self._sending: dict[Place, Sent] = {}  # what of an upload that broke off is in the store

    def checkpoint(self, *, last: bool) -> None:
        """The newest one, if the store has it not. `last`: a script's own files, too, where there is none."""
        marks = saved_folder.committed(self._r.folder.checkpoint)
        newest = marks[0] if marks else None
        if newest == self._sent and not (last and newest is None and own_files(self._r.folder.checkpoint)):
            return
        if newest is not None and not self._is_there(newest):
            begun = self._clock()
            self._upload(newest)
            self._tell_slowness(newest, self._clock() - begun)
        elif newest is None and last:
            self._upload(None)
        self._sent = newest

    def _is_there(self, mark: Mark) -> bool:
        run = self._r.attempt.key.run
        return place_of(self._r.attempt.number, mark) in checkpoints.committed(self._r.store, run)

    def _tell_slowness(self, taken: Mark, took: float) -> None:
        newer = saved_folder.committed(self._r.folder.checkpoint)[:1] != [taken]
        said = checkpoints.slowness(took, newer)
        if said and not self._slow:
            self._slow = True
            self._say(f"{self._r.attempt.key.run}: {said}")

    def _upload(self, mark: Mark | None) -> None:
        r = self._r
        run, folder = r.attempt.key.run, r.folder.checkpoint
        with packed(folder, mark) as staging:
            if staging is None:
                raise HostlerError("the checkpoint changed while it was taken")
            record = saved_folder.read(folder, mark).record if mark else {}
            place = place_of(r.attempt.number, mark)
            sent = self._sending.setdefault(place, set())
            checkpoints.save(
                r.store, run, place, staging, lambda: self._covered(record), r.attempt.guard, sent
            )
        self._sending.clear()
        r.attempt.guard()
        checkpoints.retain(r.store, run, r.attempt.number, r.keep)

    def outputs(self) -> None:
        r = self._r
        outputs.keep(r.store, r.attempt, r.folder, (), r.attempt.guard)


def place_of(attempt: int, mark: Mark | None) -> Place:
    """Where a checkpoint lies in the store."""
    return Place(attempt, mark.step * AGAIN + mark.again if mark else 0)
