"""Delivers what a dead script by hand left in its folder: points, outputs, its newest whole checkpoint.

They go into the store as those of its own attempt. Its process is dead and its folder is locked meanwhile,
so there is still one writer; an attempt over which another has claimed the run gets nothing more. A reader
then closes the attempt (`settle`); the script itself, started again, claims over it (`answer`). A deliverer
that is killed leaves the folder as it was: the next one sends what the store does not have.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostler.attempt import script_saver
from hostler.attempt.delivery import Delivery, holds
from hostler.attempt.folder import newest_record
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Uploader
from hostler.errors import DamagedError, Fenced, HostlerError
from hostler.records.body import Record
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Checkpoint, Place
from hostler.records.run import handoff, heartbeats, history, holder
from hostler.records.run.attempt import Attempt
from hostler.records.run.entries import Lost, Outcome
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Checkpointing
from hostler.spec.states import DONE, QUEUED, RUNNING
from hostler.store import NotFound, Store

Say = Callable[[str], None]
REMOVED = "."  # begins the name of a folder that is being removed


def settle(store: Store, key: RunKey, number: int, folder: Path, timing: Timing, say: Say) -> None:
    """Deliver what the dead script of this folder left, close its attempt, and remove the folder."""
    with locked(folder) as there:
        if not there:
            return
        run_log = RunLog(store, key).read_on()
        claim = run_log.entries[number - 1] if 0 < number <= run_log.head else {}
        if claim.get("folder") != str(folder):  # it died before its claim; or another store has its address
            if _is_bare(Handoff(folder)):
                remove(folder)
            return
        state = fold(run_log.entries)
        if state.state == RUNNING and state.attempt == number:
            say(f"{key.sweep}: its script died; what it left on this machine is being delivered")
            policy = sweeps.load(store, key.sweep).checkpoint
            _close(_delivered(store, run_log, state, folder, timing, policy, say), claim)
        elif not _closed_itself(run_log, number):
            Handoff(folder).script.unlink(missing_ok=True)  # its files stay, and are not looked at again
            left = f"what attempt {history.ordinal(run_log.entries, number)} left stays in {folder}"
            say(f"{key.sweep}: another attempt has its run; {left}")
            return
        if claim.get("session"):
            heartbeats.silence(store, claim["session"])
        remove(folder)


def answer(
    store: Store, run_log: RunLog, lost: RunState, timing: Timing, policy: Checkpointing, say: Say
) -> Lost:
    """The claim's answer for a dead attempt, given once its files are in the store."""
    folder = folder_of(lost)
    if folder is not None:
        with locked(folder) as there:
            try:
                if there:
                    _delivered(store, run_log, lost, folder, timing, policy, say)
                    remove(folder)
            except Fenced:
                pass  # a reader was faster: the claim does not stand, and the run is chosen again
            except (HostlerError, OSError) as error:
                say(f"the killed attempt's files in {folder} could not be delivered: {error}")
    seconds = heartbeats.lasted(store, lost.claim or {})
    if lost.session:
        heartbeats.silence(store, lost.session)
    saved = checkpoints.committed(store, run_log.key.run)
    progress = any(place.attempt == lost.attempt for place in saved)
    return Lost(lost.attempt, progress, seconds=seconds)


def folder_of(lost: RunState) -> Path | None:
    """The lost attempt's folder, if it was on this machine and is still there."""
    claim = lost.claim or {}
    if holder.is_gone(claim) is not True or not claim.get("folder"):
        return None
    folder = Path(claim["folder"])
    return folder if folder.is_dir() else None


def remove(folder: Path) -> None:
    """Remove the folder of a delivered attempt; killed inside it, nobody takes the rest for a whole one."""
    going = folder.with_name(f"{REMOVED}{folder.name}")
    with suppress(OSError):
        folder.rename(going)
        shutil.rmtree(going, ignore_errors=True)


def _delivered(
    store: Store,
    run_log: RunLog,
    lost: RunState,
    folder: Path,
    timing: Timing,
    policy: Checkpointing,
    say: Say,
) -> _Last:
    """Bring all that is in the folder into the store; Fenced once the run is another's."""
    last, handed = _Last(folder), Handoff(folder)

    def make(writer: MetricWriter, known: list[Point]) -> Uploader:
        uploader = Uploader(handed.metrics, writer, timing, time.monotonic, time.time, known=known)
        uploader.observer = last.see
        return uploader

    last.delivery = delivery_of(store, run_log, lost, handed, timing, say, make)
    last.delivery.uploader.flush()
    last.delivery.saver = script_saver.left_behind(last.delivery, timing, policy, say=say)
    finished = newest_record(handed.checkpoint).get("finished") is not None
    last.delivery.keep(trusted=False, done=finished)
    return last


def delivery_of(
    store: Store,
    run_log: RunLog,
    lost: RunState,
    handed: Handoff,
    timing: Timing,
    say: Say,
    make: Callable[[MetricWriter, list[Point]], Uploader],
    outputs: Sequence[str] = (),
) -> Delivery:
    """The delivery of a dead attempt, gone on with where it stopped; Fenced if the run is another's. `make`
    makes its uploader, given the points that the store has."""
    attempt = Attempt(store, run_log.copy(), 0.0, lambda: 0.0)  # no lease: it looks before each COMMIT
    attempt.number = lost.attempt
    attempt.look()
    writer = MetricWriter(store, run_log.key.run, lost.attempt)
    uploader = make(writer, writer.go_on())
    status = AttemptStatus(attempt, timing, time.monotonic, say, patience=0.0)
    delivery = Delivery(store, attempt, handed, uploader, status, lost, outputs)
    if writer.origin:
        delivery.restored = _read(store, attempt, Place(writer.origin.attempt, writer.origin.step))
        uploader.count_on(delivery.restored.record if delivery.restored else {})
    return delivery


class _Last:
    """A delivery, and when its process was last seen to do something."""

    delivery: Delivery

    def __init__(self, folder: Path) -> None:
        self.at = folder.stat().st_mtime

    def see(self, points: list[Point]) -> None:
        self.at = max(self.at, points[-1].time)


def _close(last: _Last, claim: Record) -> None:
    """Append how the dead attempt ended: done if it had finished, else lost."""
    delivery = last.delivery
    store, attempt = delivery.store, delivery.attempt
    saved = [
        place for place in checkpoints.committed(store, attempt.key.run) if place.attempt == attempt.number
    ]
    newest = _read(store, attempt, saved[0]) if saved else None
    if newest and newest.finished:
        result: dict[str, Any] = newest.record.get("result") or {}
        outcome = Outcome(DONE, exit=0, result=result.get("summary"))
    else:
        outcome = Outcome(QUEUED, "lost", counts="lost", progress=bool(saved))
    config = {"config": chosen} if (chosen := handoff.read(delivery.folder.chosen)) else {}
    seconds = max(0.0, last.at - float(claim.get("at") or last.at))
    delivery.close(replace(delivery.filled(outcome, seconds), more={**config, **delivery.left}))


def _read(store: Store, attempt: Attempt, place: Place) -> Checkpoint | None:
    """None if it was deleted, or cannot be read."""
    try:
        return checkpoints.read(store, attempt.key.run, place)
    except (NotFound, DamagedError):
        return None


def _closed_itself(run_log: RunLog, number: int) -> bool:
    """Whether all of the attempt was delivered, and the entry that closes it is not a person's."""
    closing = history.closing(run_log.entries, number)
    return closing is not None and "by" not in closing


def _is_bare(folder: Handoff) -> bool:
    """Whether nothing was logged or saved there."""
    return not (folder.metrics.exists() or holds(folder.checkpoint) or holds(folder.output))


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Let one deliverer in at a time, the next when it is done or dead; False if the folder is gone by then.
    Where a disk knows no locks several may deliver: they write the same under the same names."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield False
        return
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield _is_at(folder, handle)
    finally:
        os.close(handle)


def _is_at(folder: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(folder), os.fstat(handle))
    except OSError:
        return False
