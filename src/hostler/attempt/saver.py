"""The saver brings a run's checkpoint folder to the store: complete files, as soon as there are any.

Which files are complete is what its `FolderWatch` knows. The first checkpoint of an attempt is made as soon
as something is complete, those of the library whenever they come, others every `checkpoint.every`. What a
killed process left counts as far as it was known to be complete before; what one left that ended by itself,
always. A later checkpoint never lacks files that an earlier one had, only because they are being rewritten.

Each save gets a new number (`next_number`): the next attempt goes on from the highest one.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from hostler.attempt import folder as folders
from hostler.attempt.folder_parts import Parts
from hostler.attempt.folder_watch import Choice, FolderWatch
from hostler.errors import DamagedError, Fenced, HostlerError
from hostler.frozen import dataclass
from hostler.records.body import Record
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Checkpoint, Place
from hostler.records.checkpoint.parts import Sent
from hostler.records.checkpoint.saved_folder import Mark
from hostler.records.checkpoint.tree import TreeScan, scan
from hostler.spec.job import Checkpointing
from hostler.store import Store

PAYS = 10  # times the seconds that sending took, after which a new file need not wait for `every`
AGAIN = 15.0  # seconds after which a save that failed is tried again
SOONEST = 0.05  # seconds between the first looks at the folder of an attempt
GROWTH = 8  # a look comes after this part of the attempt's age, until they come every `tick`
NAMED = 3  # files that a message names
FIRST = Place(1, 1)  # of all places of a run


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


@dataclass(frozen=True)
class Target:
    """Where the checkpoints of an attempt go, and what is said of them."""

    store: Store
    run: str
    attempt: int
    covered: Callable[[Mapping[str, Any]], Record]  # by a checkpoint with this COMMIT of the library, if any
    guard: Callable[[], None]  # raises once the run is another's
    others: OtherNodes | None = None
    last: int = 0  # the highest number that the attempt has used
    bundled: bool = False  # small files go into one object


class Saver:
    """Checkpoints of an attempt. `tick` is called by its own thread; `final` once, after that has stopped."""

    def __init__(
        self,
        target: Target,
        watch: FolderWatch,
        policy: Checkpointing,
        *,
        say: Callable[[str], None],
        clock: Callable[[], float],
        known: TreeScan | None = None,
    ) -> None:
        """`known`: files that the store holds already, the whole folder unless given."""
        self.target, self._watch, self._policy = target, watch, policy
        self._say, self._clock = say, clock
        parts = watch.parts()
        self._saved = parts.all if known is None else known
        rewritten = watch.parts(self._saved).rewritten
        self._saved_rewritten = {key for key, rows in rewritten.items() if rows.rows}
        self._families: set[str] = set()  # names of files that this attempt has saved, numbers aside
        self._last, self._kept = float("-inf"), clock()
        self._failed = False  # the last save
        self._crowded = False  # what the last one replaced is still there
        self._late = False  # a save failed: the store may carry out a request of it later still
        self._thinned = float("-inf")  # when that was last to be deleted
        self._stuck = False  # said that it could not be
        self._hurried = False  # somebody waits for the next save
        self._number = target.last  # of the newest try: one that failed may have left its COMMIT
        self.commits = 0
        self._wake, self._closed = threading.Event(), False
        self._ending = False  # `final` is under way
        self._exited: Callable[[], bool] = lambda: False
        self._when: Callable[[], AbstractContextManager[None]] = nullcontext
        self._thread: threading.Thread | None = None
        self._took = 0.0  # seconds of the last save
        self._slow = False  # said of the store that it is
        self._sending: tuple[TreeScan, Place, Sent] | None = None  # broke off

    @property
    def moved(self) -> float:
        """When the folder was last seen changed."""
        return self._watch.moved

    @property
    def broke(self) -> bool:
        """Whether its thread has ended, and nobody wanted it to."""
        return self._thread is not None and not self._closed and not self._thread.is_alive()

    def start(
        self,
        tick: float,
        exited: Callable[[], bool] = lambda: False,
        when: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Tick every so many seconds. `exited`: whether the process is over, so that the rest is `final`'s.
        `when`: within which a tick may be."""
        self._exited, self._when = exited, when
        self._thread = threading.Thread(
            target=self._loop, args=(tick,), name=f"saver-{self.target.run}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._closed = True
        self._wake.set()
        if self._thread:
            self._thread.join()

    def tick(self) -> None:
        """Save if it is time, and something new is complete."""
        parts = self._watch.look()
        if not _news(parts.progress, self._saved):
            self._try_thin()
            return
        choice = self._watch.choice(parts)
        due = self._hurried or self._clock() - self._last >= self._interval(parts, choice)
        if due and self._is_progress(choice):
            self._save(choice, settled=True)
        else:
            self._watch.hold(parts, self._saved)

    def hurry(self) -> float | None:
        """Save as soon as nobody is writing, whatever time it is: when the folder was last written to, by the
        wall clock. None if all there is has been saved."""
        now = scan(self._watch.folder)
        self._hurried = _news(self._watch.parts(now).progress, self._saved)
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
            self._last, self._failed, self._late = self._clock(), True, True
            self._say(f"checkpoint not saved, will try again: {error}")
        return True

    def final(
        self, *, trusted: bool, finished: Record | None = None, alive: float = 0.0
    ) -> Checkpoint | None:
        """The process has exited. `trusted`: as it meant to, so that what it wrote is whole. `alive`: when it
        is known to have lived, and was not stopped."""
        if trusted or finished is not None:
            choice = self._watch.everything()
            new = bool(choice.rows.rows) and choice.rows != self._saved
        else:
            self._watch.scan()
            if alive:
                self._watch.learn_of_dead(alive)
            choice = self._watch.choice(self._watch.parts(), running=False)
            self._tell_missing(choice)
            new = self._is_progress(choice)
        if not choice.rows.rows or (finished is None and not new):
            before = self.target.attempt > FIRST.attempt  # one before it may have left some
            self._crowded = self._crowded or self._late or before
            self._thin()
            return None
        self._ending = True
        try:
            return self._save(choice, settled=False, finished=finished)
        except NotWhole as error:
            self._say(f"the last checkpoint was not saved, the one before it counts: {error}")
            return None

    def _is_progress(self, choice: Choice) -> bool:
        """Whether a checkpoint of these files has something new, and lacks nothing that the last one has."""
        return _news(choice.progress, self._saved) and not (choice.lacks & self._saved_rewritten)

    def _tell_missing(self, choice: Choice) -> None:
        saved = set(self._saved.rows)
        missing = [row.name for row in choice.missing if row not in saved]
        if missing:
            more = f" and {len(missing) - NAMED} more" if missing[NAMED:] else ""
            verb, they = ("are", "they") if missing[1:] else ("is", "it")
            names = ", ".join(missing[:NAMED]) + more
            self._say(f"{names} {verb} not saved: {they} may have changed when the process died")

    def _interval(self, found: Parts, choice: Choice) -> float:
        """Seconds between two saves. The library chooses when, but an uploader that never rests would be in
        the training's way. A file whose like was never saved, and a declared one, wait as long as pays."""
        every = self._policy.every
        if self._failed and not found.library.rows:
            return min(every, AGAIN)
        if found.library.rows:
            return self._took
        first = not _families(choice.rows, self._saved) <= self._families
        return min(every, PAYS * self._took) if first or found.declared.rows else every

    def _loop(self, tick: float) -> None:
        begun = self._clock()
        while not self._closed:
            wait = min(tick / 4 if self._hurried else tick, self._watch.next_look())
            wait = min(wait, max(SOONEST, (self._clock() - begun) / GROWTH))
            self._watch.expect_look(wait)
            self._wake.wait(wait)
            self._wake.clear()
            with self._when():
                if not (self._closed or self._exited() or self.try_tick()):
                    self._closed = True

    def _save(self, choice: Choice, *, settled: bool, finished: Record | None = None) -> Checkpoint | None:
        target, begun = self.target, self._clock()
        staging = self._watch.folder.with_name("staging")
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        try:
            if not self._stage(staging, choice, settled=settled):
                return None
            mark = target.others.shared(staging) if target.others else None
            place, sent = self._place(choice, mark)
            record = folders.newest_record(staging)
            facts = {"finished": True, "result": finished} if finished is not None else {}
            if self._policy.keep_every and self._clock() - self._kept >= self._policy.keep_every:
                facts["kept"] = True
                self._kept = self._clock()

            def covered() -> Record:
                if not self._watch.is_unchanged(choice, staging):
                    raise HostlerError("a file was rewritten while it was being sent")
                return {**target.covered(record), **facts}

            made = checkpoints.save(
                target.store,
                target.run,
                place,
                staging,
                covered,
                target.guard,
                sent,
                (lambda: self._collected(place)) if mark else (lambda: ([], {})),
                bundled=target.bundled,
            )
            self._watch.keep(choice, staging)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        self._families |= _families(choice.rows, self._saved)
        self._sending, self._saved, self._hurried, self._failed = None, choice.rows, False, False
        self._saved_rewritten = choice.rewritten
        self.commits, self._last = self.commits + 1, self._clock()
        self._took = self._last - begun
        self._tell_slowness(choice)
        # the first try of a first attempt has nothing before it: a list would cost each run a request
        self._crowded, self._thinned = self._crowded or place != FIRST, float("-inf")
        if self._ending:
            self._thin()
        else:
            self._try_thin()
        return made

    def _thin(self) -> None:
        """Delete what the last save replaced."""
        if self._crowded:
            self.target.guard()
            checkpoints.retain(self.target.store, self.target.run, self.target.attempt, self._policy.keep)
            self._crowded = self._stuck = False

    def _try_thin(self) -> None:
        """The same; again later, where the store did not do it. That is no trouble of a save."""
        if not self._crowded or self._clock() - self._thinned < AGAIN:
            return
        try:
            self._thin()
        except Fenced:
            raise
        except HostlerError as error:
            self._thinned = self._clock()
            if not self._stuck:
                self._stuck = True
                self._say(f"replaced checkpoints not deleted, will try again: {error}")

    def _tell_slowness(self, taken: Choice) -> None:
        overtaken = self._watch.parts(scan(self._watch.folder)).library != taken.library
        said = checkpoints.slowness(self._took, overtaken)
        if said and not self._slow:
            self._slow = True
            self._say(said)

    def _stage(self, staging: Path, choice: Choice, *, settled: bool) -> bool:
        """All files as they were at one moment; False if they did not hold still."""
        if not folders.link(self._watch.folder, staging, choice.library):
            return False
        others = self.target.others
        try:
            folders.check(staging, choice.library, others.ranks if others else None)
        except DamagedError as error:
            self._saved = choice.rows  # once is enough
            self._say(f"a checkpoint that the library wrote was not saved: {error}")
            return False
        return self._watch.stage(choice, staging, settled=settled)

    def _collected(self, place: Place) -> tuple[list[Record], Record]:
        assert self.target.others is not None
        rows, positions = self.target.others.collect(place, self._still_runs)
        return rows, {"positions": positions}

    def _still_runs(self) -> None:
        """Raise once the attempt ends: its end waits for our thread, and the others wait to be told of it."""
        if self._closed and not self._ending:
            raise NotWhole("the process ended first")

    def _place(self, choice: Choice, mark: Mark | None) -> tuple[Place, Sent]:
        """Where it goes; `mark`: as all nodes know it. An upload that broke off goes on if what is sent
        cannot have changed since."""
        number, attempt = next_number(self._number, mark), self.target.attempt
        if mark is not None:
            self._number = max(self._number, number)
            return Place(attempt, number), set()
        if self._sending and self._sending[0] == choice.library and not choice.pieces:
            return self._sending[1:]
        self._number = number
        self._sending = (choice.library, Place(attempt, number), set())
        return self._sending[1:]


def _news(now: TreeScan, saved: TreeScan) -> bool:
    """Whether a file is there that was not saved, or not as it is."""
    return not set(now.rows) <= set(saved.rows)


def _families(rows: TreeScan, saved: TreeScan) -> set[str]:
    """Names of files that were not saved, without numbers: `checkpoint-20.pt` and `checkpoint-40.pt` are of
    one family."""
    known = set(saved.rows)
    return {re.sub(r"\d+", "#", row.name) for row in rows.rows if row not in known}
