"""A store, a project and a real worker on this machine, with times of tests."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hostler import settings
from hostler.fleet.snapshot import snapshot
from hostler.records import project as projects
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.rows import Row, rows
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.run.state import RunState
from hostler.records.series import metrics
from hostler.records.series.logs import LogReader
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job, Source
from hostler.store import Store, open_store
from hostler.worker.claim.room import Room
from hostler.worker.claim.slots import Offer
from hostler.worker.loop import Worker, WorkerTerms
from hostler.worker.machine import Machine
from hostler.worker.session_name import new_session

FAST = Timing(
    beat=0.1,
    lease=3.0,
    flush=0.05,
    flush_max=0.1,
    poll=0.02,
    idle=0.2,
    wait_min=0.01,
    wait_max=0.1,
    grace=2.0,
    settle=0.05,
    usage=0.3,
    retry=1.0,
)
ONE = Offer(cpus=64, memory=1 << 50)


@dataclass
class World:
    """One project folder and its store; `work` runs a worker to its end, `working` beside the test."""

    root: Path
    timing: Timing = FAST
    offer: Offer = ONE
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.root / "project").mkdir(parents=True)
        self.store: Store = open_store(str(self.root / "store"))
        projects.ensure(self.store, "test", self.timing)

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    def file(self, name: str, text: str) -> Path:
        """A file of the project."""
        path = self.root / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def mark(self, name: str) -> Path:
        """A place outside the run where its script can leave a sign."""
        return self.root / "marks" / name

    def submit(
        self,
        script: str = "",
        *,
        name: str = "job",
        runs: Sequence[Mapping[str, Any]] = ({},),
        command: Sequence[str] = (sys.executable, "-u", "train.py"),
        **given: Any,
    ) -> Job:
        (self.root / "marks").mkdir(exist_ok=True)
        self.file("train.py", script)
        taken = snapshot.take(self.root / "project", settings.sizes(), cache=self.cache)
        snapshot.upload(self.store, taken)
        variables = {**given.pop("env", {}), "MARKS": str(self.root / "marks")}
        job = Job(
            name=name,
            command=tuple(command),
            runs=tuple(runs),
            source=Source(snapshot=taken.sha),
            env=variables,
            **given,
        )
        assert sweeps.submit(self.store, job)
        return job

    def worker(
        self,
        *,
        room: Room | None = None,
        timing: Timing | None = None,
        store: Store | None = None,
        **terms: Any,
    ) -> Worker:
        here = Machine(
            store or self.store, self.cache, new_session(), timing or self.timing, say=self.said.append
        )
        return Worker(here, room or Room(self.offer), WorkerTerms(**terms))

    def work(self, **given: Any) -> int:
        """Run a worker to its end: its exit code."""
        return self.worker(**given).run()

    @contextmanager
    def working(self, **given: Any) -> Iterator[Worker]:
        """A worker beside the test; at the end it is told to leave, if it has not by itself."""
        worker = self.worker(**given)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        try:
            yield worker
        finally:
            worker.tell("leaving")
            thread.join(60)
            assert not thread.is_alive()

    def key(self, job: Job, index: int = 0) -> RunKey:
        return RunKey(job.name, job.run_id(index))

    def state(self, job: Job, index: int = 0) -> RunState:
        return control.state_of(self.store, self.key(job, index))

    def entries(self, job: Job, index: int = 0) -> list[dict[str, Any]]:
        return control.entries_of(self.store, self.key(job, index))

    def ended(self, job: Job, index: int = 0) -> dict[str, Any]:
        """The newest release or end."""
        return next(e for e in reversed(self.entries(job, index)) if e["kind"] in ("release", "end"))

    def log(self, job: Job, index: int = 0) -> str:
        return b"".join(p.data for p in LogReader(self.store, job.run_id(index)).read()).decode()

    def curve(self, job: Job, name: str, index: int = 0) -> list[tuple[int, float]]:
        state = self.state(job, index)
        points = metrics.read(self.store, job.run_id(index), state.attempt)
        return [(p.step, p.values[name]) for p in points if name in p.values]

    def row(self, job: Job, index: int = 0) -> Row:
        return rows(self.store, [job.name])[index]

    def committed(self, job: Job, index: int = 0) -> list[Place]:
        return checkpoints.committed(self.store, job.run_id(index))

    def quick(self, **times: float) -> None:
        self.timing = replace(self.timing, **times)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.02)
