"""Delivers what the attempt of a dead worker left on this machine: output, points, files, its checkpoint.

They go into the store as those of its own attempt, the checkpoint last: whoever goes on from it has all that
was printed before. The processes are dead and the folder is locked meanwhile, so there is still one writer;
an attempt over which another has claimed the run gets nothing more. A deliverer that is killed leaves the
folder as it was: the next one sends what the store does not have. The attempt is not closed: whoever claims
the run next answers for it. No secret is kept for this: where this worker does not have those of the run, the
rest of its output is left out, and its points are not.
"""

from __future__ import annotations

import time
from pathlib import Path

from hostler import proctable
from hostler.attempt import script_saver
from hostler.attempt.dead_script import delivery_of, locked, remove
from hostler.attempt.delivery import Delivery
from hostler.attempt.uploader import Mask, Uploader
from hostler.attempt.working_files import Look
from hostler.errors import Fenced, HostlerError, MachineError, StoreError
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.records.series.logs import LogWriter
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.states import RUNNING
from hostler.worker.machine import Machine
from hostler.worker.prepare import secrets
from hostler.worker.process.process import Process
from hostler.worker.run.local_attempt import LocalAttempt, masker, uploader

LARGEST = 256 << 20  # bytes of output that are compared with what the store has
NOTE = b"[hostler] "  # begins a line of the worker's own


def remember(local: LocalAttempt, process: Process) -> None:
    """Write down whose folder it is, for a worker that finds it."""
    if local.delivery.before is not None:
        handoff.write(local.folder.files, local.delivery.before)
    key, session = local.attempt.key, local.machine.session
    facts = {"sweep": key.sweep, "run": key.run, "attempt": local.attempt.number, "session": session}
    handoff.write(local.folder.attempt, {**facts, "pid": process.pid, "start": process.group.start})


def deliver(machine: Machine, folder: Path) -> bool:
    """Deliver what is in the folder of a dead worker's run; False if another try may bring more."""
    with locked(folder) as there:
        noted = handoff.read(Handoff(folder).attempt) if there else None
        if not noted:
            return True
        if proctable.is_alive(int(noted["pid"]), str(noted["start"])):
            return False
        key, number = RunKey(str(noted["sweep"]), str(noted["run"])), int(noted["attempt"])
        try:
            run_log = RunLog(machine.store, key).read_on()
            lost = fold(run_log.entries)
            holder = lost.state, lost.attempt, lost.session
            if holder == (RUNNING, number, noted["session"]):
                machine.say(f"{key.run}: its worker died; what it left on this machine is being delivered")
                _deliver(machine, run_log, lost, folder)
        except Fenced:
            pass  # another has claimed the run just now
        except (HostlerError, OSError) as error:
            machine.say(f"{key.run}: what its dead worker left in {folder} could not be delivered: {error}")
            return not isinstance(error, StoreError)
        remove(folder)
    return True


def _deliver(machine: Machine, run_log: RunLog, lost: RunState, folder: Path) -> None:
    store, run = machine.store, run_log.key.run
    job = sweeps.load(store, run_log.key.sweep)
    if job.resources.nodes > 1:  # the other nodes' parts of a checkpoint do not come any more
        return
    handed = Handoff(folder, job.neighbours)

    def make(writer: MetricWriter, known: list[Point]) -> Uploader:
        return _uploader(machine, job, handed, writer, LogWriter(store, run, lost.attempt), known)

    timing, outputs = machine.timing, job.outputs
    delivery = delivery_of(store, run_log, lost, handed, timing, machine.say, make, outputs)
    delivery.before = _files_before(handed)
    delivery.uploader.exited()
    delivery.uploader.flush()
    delivery.saver = script_saver.left_behind(
        delivery, timing, job.checkpoint, say=lambda line: _note(delivery, line)
    )
    delivery.keep(trusted=(handoff.read(folder / "exit.json") or {}).get("code") == 0)
    delivery.uploader.flush()


def _note(delivery: Delivery, line: str) -> None:
    delivery.uploader.note(line.removeprefix(f"{delivery.attempt.key.run}: "))


def _uploader(
    machine: Machine, job: Job, handed: Handoff, writer: MetricWriter, log: LogWriter, known: list[Point]
) -> Uploader:
    stored = log.go_on()
    mask = _Rest(masker(job, handed), _sent(job, handed, stored))
    wall = handed.log.stat().st_mtime if handed.log.exists() else time.time()
    return uploader(machine, job, handed, writer, log, mask=mask, known=known, wall=lambda: wall)


def _sent(job: Job, handed: Handoff, stored: bytes) -> int | None:
    """Bytes of the masked output that are in the store; None if nothing more may go there."""
    try:
        secrets.check(job)
        if handed.log.stat().st_size > LARGEST:
            return None
        mask = masker(job, handed)
        return overlap(stored, mask.feed(handed.log.read_bytes()) + mask.flush())
    except (OSError, MachineError):
        return None


def overlap(stored: bytes, output: bytes) -> int | None:
    """Bytes of an output that the stored text, in which lines of the worker are, holds; None if that is of
    another output. Pure."""
    at = begin = 0
    in_note = False  # a line of the worker has just passed, which may have more lines
    while True:
        found = stored.find(NOTE, begin)
        end = len(stored) if found < 0 else found
        if output.startswith(stored[begin:end], at):
            at, in_note = at + end - begin, False
            if found < 0:
                return at
        elif not in_note:
            return None
        else:
            found = begin
        begin = stored.find(b"\n", found) + 1 or len(stored)
        if output.startswith(stored[found:begin], at) and not in_note:
            at += begin - found  # the script's own
        else:
            in_note = True


class _Rest:
    """Masks a stream, and leaves out its beginning."""

    def __init__(self, mask: Mask, skip: int | None) -> None:
        """`skip`: bytes that are left out; None: all."""
        self._mask, self._skip = mask, skip
        self.cover = mask.cover

    def feed(self, piece: bytes) -> bytes:
        return self._rest(self._mask.feed(piece))

    def flush(self) -> bytes:
        return self._rest(self._mask.flush())

    def _rest(self, text: bytes) -> bytes:
        if self._skip is None:
            return b""
        rest = text[self._skip :]
        self._skip = max(0, self._skip - len(text))
        return rest


def _files_before(handed: Handoff) -> Look | None:
    """Files of the working folder, as they were before the process began; None: nothing is looked for."""
    if (noted := handoff.read(handed.files)) is None:
        return None
    return {name: facts if isinstance(facts, str) else (facts[0], facts[1]) for name, facts in noted.items()}
