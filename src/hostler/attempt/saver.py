"""The saver copies a run's checkpoint folder to the store: the library's files at once, others when at rest.

A checkpoint of the library is whole by its COMMIT, and taken as it is. For the rest:
A copy of the folder counts only if nothing in it was younger than a moment while the process was alive and
not stopped, and if names, sizes, mtimes, inodes and, a moment later, all bytes are still those of the copy:
one long write into a file changes its bytes and neither its size nor its mtime. What a killed process left
counts only if it had been at rest for longer than one write of its largest file takes; what one left that
ended by itself, always. So a file that is being rewritten in place is never taken half, however late one
looks.

Each save gets a new number (`next_number`): the next attempt goes on from the highest one.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from hostler.attempt import folder as folders
from hostler.attempt.folder import Split, copy, same, split
from hostler.errors import DamagedError, Fenced, HostlerError
from hostler.records.body import Record
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Checkpoint, Place
from hostler.records.checkpoint.parts import Sent
from hostler.records.checkpoint.saved_folder import Mark
from hostler.records.checkpoint.tree import TreeScan, scan
from hostler.spec.job import Checkpointing
from hostler.store import Store

SLOW = 50e6  # bytes a second that even a stalling disk takes: how long one write of a file can last


class NotWhole(HostlerError):
    """A part of a checkpoint does not come: trying again won't help."""


class OtherNodes(Protocol):
    """Collector of the parts of other nodes, where several train one model."""

    @property
    def ranks(self) -> Container[int]:
        """Ranks whose files are here."""

    def shared(self, staging: Path) -> Mark | None:
        """The checkpoint in this folder, if other nodes have files of it."""

    def collect(
        self, place: Place, check: Callable[[], None] = lambda: None
    ) -> tuple[list[Record], dict[str, int]]:
        """The files of all other nodes, and how many of each one's points they cover."""


def next_number(last: int, mark: Mark | None = None) -> int:
    """The number of an attempt's next checkpoint: whoever resumes takes the highest. Pure.

    The only writer of an attempt counts on from the `last` number that it has used. Nodes of a gang cannot
    ask each other: what they write together has the number that its `mark` gives on each of them."""
    return last + 1 if mark is None else mark.step * 10 + min(mark.again, 8) + 1


class Saver:
    """Checkpoints of an attempt. `tick` is called by its own thread; `final` once, after that has stopped."""

    def __init__(
        self,
        store: Store,
        run: str,
        attempt: int,
        folder: Path,
        policy: Checkpointing,
        *,
        settle: float,
        steady: Callable[[], bool],
        covered: Callable[[Mapping[str, Any]], Record],
        guard: Callable[[], None],
        say: Callable[[str], None],
        clock: Callable[[], float],
        wall: Callable[[], float],
        pause: Callable[[float], None] = time.sleep,
        others: OtherNodes | None = None,
        known: TreeScan | None = None,
        rested: TreeScan | None = None,
        last: int = 0,
        note_rest: Callable[[TreeScan], None] = lambda rows: None,
    ) -> None:
        """`covered`: what a checkpoint covers whose library's COMMIT is this (empty: there is none). `known`:
        what the store holds already, `rested`: files of the script that were seen at rest; both are the whole
        folder unless given. `last`: the highest number that the attempt has used. `note_rest` hears of each
        state in which the script's files were at rest."""
        self._others, self._note_rest = others, note_rest
        self._store, self._run, self._attempt, self._folder = store, run, attempt, folder
        self._policy, self._settle, self._steady = policy, settle, steady
        self._covered, self._guard, self._say = covered, guard, say
        self._clock, self._wall, self._pause = clock, wall, pause
        self._seen = scan(folder)
        before = split(self._seen)
        self._saved = before.all if known is None else known
        self._last = self._kept = clock()
        self._hurried = False  # somebody waits for the next save
        self._number = last  # of the newest try: one that failed may have left its COMMIT
        self.commits = 0
        self._wake, self._closed = threading.Event(), False
        self._ending = False  # `final` is under way
        self._thread: threading.Thread | None = None
        self.moved = clock()  # when the folder was last seen changed
        self._whole = before.others if rested is None else rested
        self._took = 0.0  # seconds of the last save
        self._slow = False  # said of the store that it is
        self._sending: tuple[TreeScan, Place, Sent] | None = None  # broke off

    @property
    def broke(self) -> bool:
        """Whether its thread has ended, and nobody wanted it to."""
        return self._thread is not None and not self._closed and not self._thread.is_alive()

    def start(self, tick: float) -> None:
        self._thread = threading.Thread(
            target=self._loop, args=(tick,), name=f"saver-{self._run}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._closed = True
        self._wake.set()
        if self._thread:
            self._thread.join()

    def tick(self) -> None:
        """Save if it is time, something is new, and nobody is writing."""
        now = scan(self._folder)
        if now != self._seen:
            self._seen, self.moved = now, self._clock()
        found = split(now)
        rest = self._wall() - found.others.newest if self._steady() else 0.0
        if rest >= self._settle + max((row.size for row in found.others.rows), default=0) / SLOW:
            self._at_rest(found.others)
        due = self._hurried or self._clock() - self._last >= self._interval(found)
        if not due or not _new(found.all, self._saved):
            return
        if rest >= self._settle or not found.others.rows:
            self._save(found, settled=True)

    def hurry(self) -> float | None:
        """Save as soon as nobody is writing, whatever time it is: when the folder was last written to, by the
        wall clock. None if all there is has been saved."""
        now = scan(self._folder)
        self._hurried = _new(split(now).all, self._saved)
        if self._hurried:
            self._wake.set()
        return now.newest if self._hurried else None

    def try_tick(self) -> bool:
        """A tick that may fail: False once the run is another's, so that no more are needed."""
        try:
            self.tick()
        except Fenced:
            return False
        except (HostlerError, OSError) as error:
            self._last = self._clock()
            self._say(f"checkpoint not saved, will try again: {error}")
        return True

    def final(self, *, trusted: bool, finished: Record | None = None) -> Checkpoint | None:
        """The process has exited. `trusted`: by itself, so that what it wrote is whole."""
        found = split(scan(self._folder))
        if finished is None and not trusted and found.others != self._whole:
            self._say("the checkpoint folder is not saved: it may have changed when the process died")
            found = replace(found, others=TreeScan(()))  # the library's own is whole, however it died
        if not found.all.rows or (finished is None and not _new(found.all, self._saved)):
            return None
        self._ending = True
        try:
            return self._save(found, settled=False, finished=finished)
        except NotWhole as error:
            self._say(f"the last checkpoint was not saved, the one before it counts: {error}")
            return None

    def _interval(self, found: Split) -> float:
        """The library chooses when; but an uploader that never rests would be in the training's way."""
        return self._took if found.whole.rows else self._policy.every

    def _loop(self, tick: float) -> None:
        while not self._closed:
            self._wake.wait(self._settle / 4 if self._hurried else tick)
            self._wake.clear()
            if not self._closed and not self.try_tick():
                self._closed = True

    def _save(self, found: Split, *, settled: bool, finished: Record | None = None) -> Checkpoint | None:
        staging, begun = self._folder.with_name("staging"), self._clock()
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        try:
            if not self._stage(staging, found, settled=settled):
                return None
            mark = self._others.shared(staging) if self._others else None
            place, sent = self._place(found, mark)
            record = folders.newest_record(staging)
            facts = {"finished": True, "result": finished} if finished is not None else {}
            if self._policy.keep_every and self._clock() - self._kept >= self._policy.keep_every:
                facts["kept"] = True
                self._kept = self._clock()
            made = checkpoints.save(
                self._store,
                self._run,
                place,
                staging,
                lambda: {**self._covered(record), **facts},
                self._guard,
                sent,
                (lambda: self._collected(place)) if mark else (lambda: ([], {})),
            )
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        self._sending, self._saved, self._hurried = None, found.all, False
        self.commits, self._last = self.commits + 1, self._clock()
        self._took = self._last - begun
        self._tell_slowness(found)
        self._guard()
        checkpoints.retain(self._store, self._run, self._attempt, self._policy.keep)
        return made

    def _tell_slowness(self, taken: Split) -> None:
        said = checkpoints.slowness(self._took, split(scan(self._folder)).whole != taken.whole)
        if said and not self._slow:
            self._slow = True
            self._say(said)

    def _stage(self, staging: Path, found: Split, *, settled: bool) -> bool:
        """All files as they were at one moment; False if they did not hold still."""
        if not folders.link(self._folder, staging, found.whole):
            return False
        try:
            folders.check(staging, found.whole, self._others.ranks if self._others else None)
        except DamagedError as error:
            self._saved = found.all  # once is enough
            self._say(f"a checkpoint that the library wrote was not saved: {error}")
            return False
        rows = found.others
        return copy(self._folder, staging, rows) and (
            not settled or not rows.rows or self._held_still(staging, rows)
        )

    def _collected(self, place: Place) -> tuple[list[Record], Record]:
        assert self._others is not None
        rows, positions = self._others.collect(place, self._still_runs)
        return rows, {"positions": positions}

    def _still_runs(self) -> None:
        """Raise once the attempt ends: its end waits for our thread, and the others wait to be told of it."""
        if self._closed and not self._ending:
            raise NotWhole("the process ended first")

    def _place(self, found: Split, mark: Mark | None) -> tuple[Place, Sent]:
        """Where it goes; `mark`: as all nodes know it. An upload that broke off goes on if what is sent
        cannot have changed since."""
        number = next_number(self._number, mark)
        if mark is not None:
            self._number = max(self._number, number)
            return Place(self._attempt, number), set()
        if self._sending and self._sending[0] == found.whole and not found.others.rows:
            return self._sending[1:]
        self._number = number
        self._sending = (found.whole, Place(self._attempt, number), set())
        return self._sending[1:]

    def _at_rest(self, others: TreeScan) -> None:
        if others != self._whole:
            self._whole = others
            self._note_rest(others)

    def _held_still(self, staging: Path, before: TreeScan) -> bool:
        self._pause(self._settle / 8)  # a write that the kernel holds back goes on at least every 200 ms
        return same(self._folder, staging, before) and split(scan(self._folder)).others == before


def _new(now: TreeScan, saved: TreeScan) -> bool:
    return bool(now.rows) and now != saved
