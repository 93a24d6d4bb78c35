"""Runs a drill: a store of its own, real workers, and SIGKILL at the planned moments.

The rig is the parent of its workers: it names their sessions and holds the pipe at whose end they leave, so
nothing goes on when the rig is gone, however it went. A kill ends the worker at once and every process of the
run with it; the next worker is told that it is dead, delivers what they left, and takes the run over.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hostler import env, proctable
from hostler.drill.collect import collect
from hostler.drill.evidence import DrillAttempt, Evidence
from hostler.drill.plan import FINE, KillMoment, Pace
from hostler.errors import MachineError
from hostler.fleet.submit import submit
from hostler.records.checkpoint import checkpoints
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.spec.job import Job
from hostler.spec.project import Project
from hostler.spec.states import PAUSED
from hostler.store import Store, open_store
from hostler.worker.parent import argv_of
from hostler.worker.run import leftovers, run_folders
from hostler.worker.session_name import new_session

HOOK = Path(__file__).parent / "hook"
LOOK = 0.02
PATIENCE = 10.0  # seconds for killed processes to go
QUICK = {"poll": 0.05, "flush": 0.2, "flush_max": 1.0, "wait_min": 0.05, "restart_min": 0.05}


@dataclass(frozen=True)
class Setup:
    """The script to drill, and its throw-away folders."""

    project: Project
    job: Job
    scratch: Path
    cache: Path
    say: Callable[[str], None]


@dataclass
class _RigAttempt:
    """An attempt, as the rig sees it."""

    number: int
    begun: float
    first_sign: float | None = None
    ended: float | None = None
    killed: bool = False
    at_edge: bool = False

    def age(self) -> float:
        return time.monotonic() - self.begun

    def end(self, *, killed: bool = False) -> None:
        if self.ended is None:
            self.ended, self.killed = time.monotonic(), killed

    def as_try(self) -> DrillAttempt:
        return DrillAttempt(self.number, (self.ended or self.begun) - self.begun, self.killed, self.at_edge)


def undisturbed(setup: Setup, name: str) -> tuple[Evidence, Pace]:
    rig = _Rig(setup, name, Pace())
    evidence = rig.run(())
    if not rig.attempts:
        return evidence, Pace()
    attempt = rig.attempts[-1]
    startup = (attempt.first_sign or attempt.begun) - attempt.begun
    return evidence, Pace(startup, evidence.seconds, rig.amount if _is_fine(evidence) else 0)


def killed(setup: Setup, name: str, pace: Pace, moments: Sequence[KillMoment]) -> Evidence:
    return _Rig(setup, name, pace).run(moments)


def _is_fine(evidence: Evidence) -> bool:
    return len(evidence.first.sights) >= FINE or len(evidence.lines) >= FINE or evidence.steps_done() >= FINE


@dataclass
class _Rig:
    setup: Setup
    name: str
    pace: Pace
    attempts: list[_RigAttempt] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    joined: bool = False
    amount: int = 0  # how much the newest attempt has said

    def run(self, moments: Sequence[KillMoment]) -> Evidence:
        """Until the run has ended, killing each attempt at its moment."""
        root = self.setup.scratch / self.name
        (root / "seen").mkdir(parents=True)
        store = open_store(str(root / "store"))
        key = submit(store, self.setup.project, self.setup.job).key
        pending, done = list(moments), False
        while not done:
            with self._worker(store, key) as (worker, session):
                done = self._watch(store, key, worker, session, pending)
            leftovers.remove_leftovers()
        tries = [attempt.as_try() for attempt in self.attempts]
        return collect(store, key, root / "seen", tries, joined=self.joined)

    @contextmanager
    def _worker(self, store: Store, key: RunKey) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        session = new_session()
        command = [sys.executable, "-m", "hostler.worker", store.url, "--sweep", key.sweep, "--slots", "1"]
        theirs, ours = os.pipe()
        with open(self.setup.scratch / self.name / "worker.log", "ab") as log:
            worker = subprocess.Popen(
                argv_of(command, session, self.dead, theirs),
                pass_fds=[theirs],
                env=self._environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        os.close(theirs)
        try:
            yield worker, session
        finally:
            os.close(ours)
            _end(worker)
            self.dead.append(session)

    def _environ(self) -> dict[str, str]:
        inherited = env.inherited()
        path = os.pathsep.join(filter(None, [str(HOOK), inherited.get("PYTHONPATH", "")]))
        return {
            **inherited,
            **{f"HOSTLER_{name.upper()}": str(value) for name, value in QUICK.items()},
            env.CACHE: str(self.setup.cache),
            env.DRILL: str(self.setup.scratch / self.name / "seen"),
            env.DRILL_EVERY: str(self.pace.every),
            "PYTHONPATH": path,
        }

    def _watch(
        self,
        store: Store,
        key: RunKey,
        worker: subprocess.Popen[bytes],
        session: str,
        pending: list[KillMoment],
    ) -> bool:
        """Until the run has ended (True) or this worker was killed (False)."""
        run_log = RunLog(store, key)
        attempt: _RigAttempt | None = None
        while True:
            state = fold(run_log.read_on().entries)
            if state.ended or state.state == PAUSED:
                if attempt:
                    attempt.end()
                _leave(worker)
                return True
            if worker.poll() is not None:
                raise MachineError("the drill's worker has left", hint=_tail(self._log()))
            attempt = self._look(state, session, key, attempt)
            if attempt and not attempt.ended and pending and self._due(store, key, attempt, pending[0]):
                self._kill(worker, session, key, attempt)
                pending.pop(0)
                return False
            time.sleep(LOOK)

    def _look(
        self, state: RunState, session: str, key: RunKey, one: _RigAttempt | None
    ) -> _RigAttempt | None:
        """The attempt that is under way, once its process has started."""
        if state.session != session:
            return None
        folder = self._folder(session, key, state.attempt)
        if one is None or one.number != state.attempt:
            if not (folder.folder / "process.json").exists():
                return None
            one = _RigAttempt(state.attempt, time.monotonic())
            self.attempts.append(one)
            self.amount = 0
        self.joined = self.joined or folder.joined.exists()
        self.amount = self._said(folder, one.number) or self.amount
        if one.first_sign is None and self.amount:
            one.first_sign = time.monotonic()
        if (folder.folder / "exit.json").exists():
            one.end()
        return one

    def _said(self, folder: Handoff, attempt: int) -> int:
        """Bytes an attempt has reported so far: to the witness, or else in its output."""
        paths = (self.setup.scratch / self.name / "seen").glob(f"{attempt}-0-*.jsonl")
        return max(map(_size, paths), default=0) or _size(folder.log)

    def _due(self, store: Store, key: RunKey, one: _RigAttempt, moment: KillMoment) -> bool:
        share = self.pace.share(self.amount, one.age())
        if not moment.is_due(share, has_saved=True):
            return False
        saved = any(place.attempt == one.number for place in checkpoints.committed(store, key.run))
        return moment.is_due(share, saved)

    def _kill(self, worker: subprocess.Popen[bytes], session: str, key: RunKey, one: _RigAttempt) -> None:
        folder = self._folder(session, key, one.number)
        process = handoff.read(folder.folder / "process.json") or {}
        worker.kill()
        worker.wait()
        one.end(killed=True)
        self.setup.say(f"killed attempt {one.number} after {one.age():.1f} s")
        deadline = time.monotonic() + PATIENCE
        while process and proctable.is_alive(process["pid"], process["start"]):
            if time.monotonic() > deadline:
                raise MachineError(f"process {process['pid']} of the drill could not be killed")
            time.sleep(LOOK)
        one.at_edge = bool((handoff.read(folder.rested) or {}).get("at_edge"))

    def _folder(self, session: str, key: RunKey, attempt: int) -> Handoff:
        return Handoff(run_folders.of_run(self.setup.cache, session, key.run, attempt))

    def _log(self) -> Path:
        return self.setup.scratch / self.name / "worker.log"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _leave(worker: subprocess.Popen[bytes]) -> None:
    """Let it leave by itself, as it does when nothing is left for it."""
    try:
        worker.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        pass


def _end(worker: subprocess.Popen[bytes]) -> None:
    """The worker, its supervisors and its runs: none is left. It is stopped first: it starts no more."""
    if worker.poll() is not None:
        return
    worker.send_signal(signal.SIGSTOP)
    below = proctable.below(proctable.table(), worker.pid)
    starts = {pid: proctable.start_of(pid) for pid in below}
    worker.kill()
    worker.wait()
    deadline = time.monotonic() + PATIENCE
    while any(proctable.is_alive(pid, start) for pid, start in starts.items()):
        if time.monotonic() > deadline:
            return
        time.sleep(LOOK)


def _tail(path: Path) -> str:
    return " ".join(path.read_text(errors="replace").splitlines()[-3:]) if path.exists() else ""
