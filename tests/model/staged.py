"""A stage for workers whose every store request can be the last before something happens.

The real Finder, Execution, Saver, Uploader, Pulse and records run here, one request after the other in one
thread; only the user's process is played. What happens "while a worker is stopped before its i-th request"
is a function called from inside that request, so each play is deterministic and nobody ever waits.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hostler.attempt.saver import Saver
from hostler.errors import StoreError, StoreUnreachable
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.run.state import RunState
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Checkpointing, Job, Resources
from hostler.store import Blob, Entry
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.finder import Finder
from hostler.worker.claim.slots import Placement
from hostler.worker.machine import Machine
from hostler.worker.process.process import Process
from hostler.worker.pulse import Pulse
from hostler.worker.run.execution import Execution
from hostler.worker.run.exit import Exit
from hostler.worker.run.folder_remover import FolderRemover

LEASE = 60.0
STEPS = 4
SAVED = (1, 2)  # steps after which the script writes its checkpoint; it also does at the end
TIMING = Timing(lease=LEASE, flush=0.0, wait_min=0.0, wait_max=0.0, settle=0.0, usage=1e9)
JOB = Job(
    name="staged",
    command=("train",),
    checkpoint=Checkpointing(every=0.0, keep=1),
    resources=Resources(cpus=1),
)

Happening = Callable[[], None]


class Killed(BaseException):
    """The worker's machine is gone: nothing it would have done after this happens."""


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Seat:
    """One worker's way to the store: counts its requests; something may happen before any of them."""

    def __init__(self, store: MemoryStore) -> None:
        self.store, self.url = store, store.url
        self.requests: list[str] = []
        self.before: dict[int, Happening] = {}
        self.lose: set[int] = set()  # requests that are carried out, but not answered
        self.refuse: set[int] = set()  # requests that do not reach the store
        self.dead = False
        self.saver: Saver | None = None  # of the attempt that goes on here

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        return self._ask(f"get {key}", lambda: self.store.get(key, start=start, end=end))

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        return self._ask(f"put {key}", lambda: self.store.put(key, data, if_absent=if_absent))

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        return iter(self._ask(f"list {prefix}", lambda: [*self.store.list(prefix, after, deep=deep)]))

    def delete(self, *keys: str) -> None:
        for key in keys:
            self._ask(f"delete {key}", lambda key=key: self.store.delete(key))  # type: ignore[misc]

    def upload(self, path: Path, key: str) -> None:
        self._ask(f"upload {key}", lambda: self.store.upload(path, key))

    def download(self, key: str, path: Path) -> None:
        self._ask(f"download {key}", lambda: self.store.download(key, path))

    def _ask(self, request: str, send: Callable[[], Any]) -> Any:
        if self.dead:
            raise Killed
        self.requests.append(request)
        number = len(self.requests)
        if number in self.before:
            self.before[number]()
        if number in self.refuse:
            raise StoreUnreachable("not reached")
        answer = send()
        if number in self.lose:
            raise StoreUnreachable("the answer is lost")
        return answer


class Script:
    """The user's process: trains STEPS steps, goes on from its checkpoint, prints a metric for each step.

    Its weights are the list of who trained each step, so that a checkpoint tells where it comes from.
    """

    pid, supervisor, supervisor_start = 0, 0, ""
    group = SimpleNamespace(start="", mark="")

    others = 0
    gone = True  # once it has ended

    def __init__(self, folder: Path, log: Path, attempt: int, between: Happening | None) -> None:
        """`between`: what happens between two steps; None: it is over within a moment."""
        self._weights, self._output = folder / "checkpoint" / "weights.json", folder / "output" / "note.txt"
        self._log, self._attempt, self._between = log, attempt, between
        self._trained = json.loads(self._weights.read_text()) if self._weights.exists() else []
        self._exit: Exit | None = None
        self._up = False

    def wait(self, timeout: float | None = None) -> Exit | None:
        """Train one step, or all of them within a moment; else the first moment is too short for one."""
        if not self._up and self._between:
            self._up = True
            return None
        step = len(self._trained) + 1
        if self._exit is None and step <= STEPS:
            self._train(step)
            if self._between is None:
                return self.wait()
            self._between()
        elif self._exit is None:
            self._output.write_text(f"by {self._attempt}")
            self._exit = Exit(code=0)
        return self._exit

    def _train(self, step: int) -> None:
        self._trained.append([step, self._attempt])
        with open(self._log, "a") as log:
            print(json.dumps({"step": step, "loss": 1 / step, "by": self._attempt}), file=log)
        if step in SAVED or step == STEPS:
            fresh = self._weights.with_name("new")
            fresh.write_text(json.dumps(self._trained))
            fresh.replace(self._weights)

    def poll(self) -> Exit | None:
        return self._exit

    def steady(self) -> bool:
        return self._exit is None

    def signal(self, number: int) -> bool:
        self._exit = self._exit or Exit(signal=number)
        return True

    def kill(self) -> Exit | None:
        self.signal(9)
        return self._exit

    def close(self) -> None:
        self.kill()


class AtOnce(FolderRemover):
    """The next stage has runs of the same names."""

    def remove_soon(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)


class StagedWorker:
    """One worker: looks for work, carries runs out, and beats between two steps of the script."""

    def __init__(self, stage: Stage, session: str) -> None:
        self.session, self.clock, self.seat = session, Clock(), Seat(stage.store)
        machine_facts = {"host": f"host-{session}"}
        self._finder = Finder(self.seat, Claimant(session, machine_facts), TIMING, self.clock)
        self._pulse = Pulse(self.seat, session, TIMING, machine_facts, self.clock)
        self.execution: Execution | None = None  # the attempt under way
        self.outcomes: list[str] = []
        self._moment = stage.moment
        self._machine = Machine(
            self.seat,
            stage.cache,
            session,
            TIMING,
            self.clock,
            say=lambda line: None,
            start=self._start,
            remover=AtOnce(),
        )

    def work(self) -> StagedWorker:
        """Take runs until none is open; a killed worker just ends."""
        try:
            for _ in range(100):
                if not self._look():
                    return self
                self.clock.now += LEASE / 5
        except Killed:
            self.seat.dead = True
            self.outcomes.append("killed")
            return self
        raise AssertionError(f"{self.session} never found its work ended")

    def freeze_before(self, i: int, meanwhile: Happening, *, seconds: float = 2 * LEASE) -> StagedWorker:
        """Stop before request i; `seconds` pass on its own clock (0: it does not even notice)."""

        def happening() -> None:
            meanwhile()
            self.clock.now += seconds

        self.seat.before[i] = happening
        return self

    def die_before(self, i: int, then: Happening) -> StagedWorker:
        def happening() -> None:
            self.seat.dead = True
            then()
            raise Killed

        self.seat.before[i] = happening
        return self

    def _look(self) -> bool:
        try:
            found = self._finder.find(lambda ask: True, lambda ask: True, whole=True, mine=())
        except StoreError:
            return True
        if found.taken:
            self._carry_out(Execution(self._machine, found.taken.job, found.taken.attempt, Placement()))
        return bool(found.open)

    def _carry_out(self, execution: Execution) -> None:
        self.execution = execution
        self._pulse.hold(execution)
        try:
            execution._run()
        finally:
            self._pulse.drop(execution)
            self.execution = None
        self.outcomes.append(execution.outcome)

    def _start(self, argv: list[str], *, cwd: Path, env: dict[str, str], folder: Path, log: Path) -> Process:
        assert self.execution is not None
        number = self.execution.attempt.number
        between = None if self._moment else self._between
        return Script(folder, log, number, between)  # type: ignore[return-value]

    def _between(self) -> None:
        """What the saver's and the pulse's threads do, at a moment of our choice."""
        assert self.seat.saver is not None
        self.seat.saver.try_tick()
        try:
            self._pulse.beat()
        except StoreError:
            pass


@dataclass
class Stage:
    """One run in one store, and the workers that come to it."""

    cache: Path
    store: MemoryStore = field(default_factory=MemoryStore)
    moment: bool = False  # scripts are over before anybody looks after them
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        assert sweeps.submit(self.store, JOB)

    @property
    def key(self) -> RunKey:
        return RunKey(JOB.name, JOB.run_id(0))

    @property
    def state(self) -> RunState:
        return control.state_of(self.store, self.key)

    def worker(self, name: str) -> StagedWorker:
        return StagedWorker(self, f"{name}{next(self._numbers)}")
