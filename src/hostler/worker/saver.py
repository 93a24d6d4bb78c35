"""Saves the checkpoint folder of a script that knows nothing of hostler, and brings it back.

A copy of the folder counts only if nothing in it was younger than a moment while the process was alive and
not stopped, and if names, sizes, mtimes, inodes and, a moment later, all bytes are still those of the copy:
one long write into a file changes its bytes and neither its size nor its mtime. What a killed process left
counts only if it had been at rest for longer than one write of its largest file takes; what one left that
ended by itself, always. So a file that is being rewritten in place is never taken half, however late one
looks.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from hostler.errors import Fenced, HostlerError
from hostler.records import checkpoints
from hostler.records.body import Record
from hostler.records.checkpoints import Checkpoint, Place
from hostler.records.tree import TreeScan, scan
from hostler.spec.job import Checkpointing
from hostler.store import Store

SLOW = 50e6  # bytes a second that even a stalling disk takes: how long one write of a file can last


class Saver:
    """One attempt's checkpoints. `tick` is called by its own thread; `final` once, after that has stopped."""

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
        covered: Callable[[], Record],
        guard: Callable[[], None],
        say: Callable[[str], None],
        clock: Callable[[], float],
        wall: Callable[[], float],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._run, self._attempt, self._folder = store, run, attempt, folder
        self._policy, self._settle, self._steady = policy, settle, steady
        self._covered, self._guard, self._say = covered, guard, say
        self._clock, self._wall, self._pause = clock, wall, pause
        self._saved = scan(folder)  # what the store holds already: the restored checkpoint
        self._last = self._kept = clock()
        self._hurried = False  # somebody waits for the next save
        self._step = 0  # of the newest try: one that failed may have left its COMMIT, so none is used twice
        self.commits = 0
        self._wake, self._closed = threading.Event(), False
        self._thread: threading.Thread | None = None
        self.moved = clock()  # when the folder was last seen changed
        self._seen = self._whole = self._saved

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
        rest = self._wall() - now.newest if self._steady() else 0.0
        if rest >= self._settle + max((row.size for row in now.rows), default=0) / SLOW:
            self._whole = now
        due = self._hurried or self._clock() - self._last >= self._policy.every
        if not due or not _new(now, self._saved):
            return
        if rest >= self._settle:
            self._save(now, settled=True)

    def hurry(self) -> float | None:
        """Save as soon as nobody is writing, whatever time it is: when the folder was last written to, by the
        wall clock. None if all there is has been saved."""
        now = scan(self._folder)
        self._hurried = _new(now, self._saved)
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
        now = scan(self._folder)
        if not now.rows or (finished is None and not _new(now, self._saved)):
            return None
        if finished is None and not trusted and now != self._whole:
            self._say("the checkpoint folder may have been written to when the process died: not saved")
            return None
        return self._save(now, settled=False, finished=finished)

    def _loop(self, tick: float) -> None:
        while not self._closed:
            self._wake.wait(self._settle / 4 if self._hurried else tick)
            self._wake.clear()
            if not self._closed and not self.try_tick():
                self._closed = True

    def _save(self, before: TreeScan, *, settled: bool, finished: Record | None = None) -> Checkpoint | None:
        staging = self._folder.with_name("staging")
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        try:
            if not copy(self._folder, staging, before) or (settled and not self._held_still(staging, before)):
                return None
            self._step += 1
            place = Place(self._attempt, self._step)
            facts = {"finished": True, "result": finished} if finished is not None else {}
            if self._policy.keep_every and self._clock() - self._kept >= self._policy.keep_every:
                facts["kept"] = True
                self._kept = self._clock()
            made = checkpoints.save(
                self._store, self._run, place, staging, lambda: {**self._covered(), **facts}, self._guard
            )
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        self.commits, self._saved, self._last = self.commits + 1, before, self._clock()
        self._hurried = False
        self._guard()
        checkpoints.retain(self._store, self._run, self._attempt, self._policy.keep)
        return made

    def _held_still(self, staging: Path, before: TreeScan) -> bool:
        self._pause(self._settle / 8)  # a write that the kernel holds back goes on at least every 200 ms
        return same(self._folder, staging, before) and scan(self._folder) == before


def same(folder: Path, copied: Path, rows: TreeScan) -> bool:
    """Whether the scanned files hold the very bytes that were copied."""
    names = [row.name for row in rows.rows if not row.link]
    try:
        return all(_equal(folder / name, copied / name) for name in names)
    except FileNotFoundError:
        return False


def _equal(one: Path, other: Path) -> bool:
    """By bytes alone: the standard comparison remembers its answer by size and time."""
    with open(one, "rb", buffering=0) as a, open(other, "rb", buffering=0) as b:
        while True:
            piece = a.read(1 << 20)
            if piece != b.read(1 << 20):
                return False
            if not piece:
                return True


def copy(folder: Path, target: Path, rows: TreeScan) -> bool:
    """Copy the scanned files; False if one vanished. Links inside stay links, others turn into files."""
    for row in rows.rows:
        source, to = folder / row.name, target / row.name
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            if row.link and _stays(folder, source):
                to.symlink_to(os.path.relpath(source.resolve(), source.parent.resolve()))
            elif row.link and not source.is_file():
                continue
            else:
                shutil.copyfile(source, to)
                to.chmod(row.mode & 0o777 if not row.link else 0o644)
                os.utime(to, ns=(row.mtime_ns, row.mtime_ns))
        except FileNotFoundError:
            return False
    return True


def _stays(folder: Path, link: Path) -> bool:
    return link.resolve().is_relative_to(folder.resolve())


def _new(now: TreeScan, saved: TreeScan) -> bool:
    return bool(now.rows) and now != saved
