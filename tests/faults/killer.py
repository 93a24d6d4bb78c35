"""Workers that are killed and frozen at random, and what the store must say afterwards.

Every process of a farm carries the farm's own cache folder in its environment: nobody else is ever hurt,
and whoever is left is found.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "history"))

from recorder import Recorder

import hostler
from hostler import proctable, settings
from hostler.fleet.snapshot import snapshot
from hostler.records import layout, project
from hostler.records.checkpoint import checkpoints
from hostler.records.run import log
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.records.series import metrics
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import Queue
from hostler.spec.job import Checkpointing, Job, Source
from hostler.store import Store, open_store

SOURCE = str(Path(hostler.__file__).resolve().parents[1])
PARENT, WORKER, SUPERVISOR, RUN = "parent", "worker", "supervisor", "run"
SPAWNER, WARM = "spawner", "warm"  # who forks supervisors, and with imports of a script
OTHER = "other"  # what a worker asks another Python, and the like
ENOUGH = 3  # runs whose process was killed, after which some are sure to have been tried again
TIMES = {
    "beat": 0.3,
    "lease": 3.0,
    "flush": 0.2,
    "flush_max": 0.2,
    "poll": 0.05,
    "wait_min": 0.05,
    "wait_max": 0.3,
    "grace": 2.0,
    "settle": 0.15,
    "retry": 2.0,
    "restart_min": 0.05,
    "restart_max": 0.3,
    "usage": 3600,
}


@dataclass
class Farm:
    """A store, a code folder, and workers on it that this process may kill."""

    url: str
    folder: Path
    times: Mapping[str, float]
    extra: Mapping[str, str] = field(default_factory=dict)  # more environment for workers
    parents: list[subprocess.Popen[bytes]] = field(default_factory=list)
    history: Recorder | None = None  # writes down what happens to it
    words: Sequence[str] = ()  # options of every worker

    def __post_init__(self) -> None:
        for path in (self.code, self.folder / "tmp"):
            path.mkdir(parents=True, exist_ok=True)
        self.store: Store = open_store(self.url)  # as patient as a person's command

    @property
    def code(self) -> Path:
        return self.folder / "code"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def environ(self) -> dict[str, str]:
        times = {f"HOSTLER_{name.upper()}": str(value) for name, value in self.times.items()}
        own = {"HOSTLER_CACHE": str(self.cache), "TMPDIR": str(self.folder / "tmp"), "PYTHONPATH": SOURCE}
        kept = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
        return {**kept, **times, **own, **self.extra}

    def submit(self, job: Job) -> Job:
        """The job with the code that lies in the folder; beat and lease are the project's from here on."""
        taken = snapshot.take(self.code, settings.sizes())
        snapshot.upload(self.store, taken)
        timing = settings.Timing(beat=self.times["beat"], lease=self.times["lease"])
        project.ensure(self.store, "farm", timing)
        whole = Job(**{**vars(job), "source": Source(snapshot=taken.sha)})
        assert sweeps.submit(self.store, whole)
        return whole

    def start(self, *words: str, surroundings: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """One parent with its worker; `surroundings`: more environment for these two alone."""
        argv = [
            sys.executable,
            "-m",
            "hostler.worker",
            self.url,
            "--slots",
            "2",
            "--cpus",
            "2",
            *self.words,
            *words,
        ]
        with open(self.folder / "workers.log", "ab") as output:
            environ = {**self.environ, **(surroundings or {})}
            parent = subprocess.Popen(argv, stdout=output, stderr=output, env=environ)
        self.parents.append(parent)
        self.note("started", pid=parent.pid, surroundings=surroundings)
        return parent

    def record(self, job: Job) -> Recorder:
        """A recorder of this sweep; what is done to the farm from now on is in its history."""
        self.history = Recorder(self.url, self.folder / "evidence", job.name, self.environ)
        return self.history

    def note(self, what: str, **facts: object) -> None:
        if self.history is not None:
            self.history.add(what, **facts)

    def tend(self, count: int) -> None:
        """As many parents as there should be."""
        self.parents = [parent for parent in self.parents if parent.poll() is None]
        for _ in range(count - len(self.parents)):
            self.start()

    def processes(self, kind: str | None = None) -> dict[int, str]:
        """Living processes of this farm → what they are."""
        found = {pid: _kind(pid) for pid in proctable.marked(str(self.cache), "HOSTLER_CACHE")}
        return {
            pid: what
            for pid, what in found.items()
            if kind in (None, what) and (row := proctable.row(pid)) and row.alive
        }

    def open_runs(self, job: Job) -> int:
        return len(Queue(self.store, job).open())

    def is_open(self, key: RunKey) -> bool:
        return not fold(RunLog(self.store, key).read_on().entries).ended

    def finish(
        self,
        job: Job,
        *,
        workers: int = 2,
        seconds: float = 120.0,
        meanwhile: Callable[[], object] = lambda: False,
    ) -> None:
        """Workers, started again where they left, until nothing is open and `meanwhile` has no more to do."""
        deadline = time.monotonic() + seconds
        while self.open_runs(job) or meanwhile():
            assert time.monotonic() < deadline, f"{self.open_runs(job)} runs are still open\n{self.said()}"
            meanwhile()
            self.tend(workers)
            time.sleep(0.2)
        for parent in self.parents:
            parent.wait(max(1.0, deadline - time.monotonic()))

    def said(self) -> str:
        return (self.folder / "workers.log").read_text(errors="replace")[-6000:]

    def end(self) -> None:
        """Kill what is left, parents first so that they start nothing."""
        for parent in self.parents:
            parent.kill()
            parent.wait()
        while left := self.processes():
            for pid in left:
                send(pid, signal.SIGKILL)
            time.sleep(0.02)


@contextmanager
def farm(url: str, folder: Path, extra: Mapping[str, str] | None = None, **times: float) -> Iterator[Farm]:
    made = Farm(url, folder, {**TIMES, **times}, extra or {})
    try:
        yield made
    finally:
        made.end()


@dataclass
class Killer:
    """Kills and freezes, by a seed. The frozen go on when their time has come, often after the rage."""

    farm: Farm
    seed: int
    workers: int
    pace: float = 0.2  # seconds between two deeds, on average
    weights: Mapping[str, float] = field(
        default_factory=lambda: {
            RUN: 0.35,
            WORKER: 0.3,
            SUPERVISOR: 0.15,
            PARENT: 0.07,
            SPAWNER: 0.05,
            WARM: 0.05,
            OTHER: 0.03,
        }
    )
    freezes: float = 0.35  # share of deeds that freeze, and do not kill
    frozen: dict[int, float] = field(default_factory=dict)  # process → when it goes on
    deeds: list[tuple[str, int]] = field(default_factory=list)

    def rage(self, seconds: float) -> None:
        """For so long; longer where the machine is so slow that hardly a run has begun to be killed."""
        rng, end = random.Random(self.seed), time.monotonic() + seconds
        while time.monotonic() < end or (self._felled() < ENOUGH and time.monotonic() < end + 30):
            time.sleep(rng.expovariate(1 / self.pace))
            self.let_go_on()
            self.farm.tend(self.workers)
            self._act(rng)

    def strike(self, count: int, every: float, ready: Callable[[], bool]) -> None:
        """So many deeds, one each so many seconds, from when it is ready on."""
        rng = random.Random(self.seed)
        until(lambda: self.farm.tend(self.workers) or ready(), 240, why=self.farm.said)
        while len(self.deeds) < count:
            moment = time.monotonic() + every
            while time.monotonic() < moment or self.let_go_on():
                self.farm.tend(self.workers)
                time.sleep(0.1)
            self._act(rng)

    def let_go_on(self) -> bool:
        """Those whose time has come; whether others are still frozen."""
        now = time.monotonic()
        for pid in [pid for pid, when in self.frozen.items() if when <= now]:
            send(pid, signal.SIGCONT)
            self.farm.note("goes-on", pid=pid)
            del self.frozen[pid]
        return bool(self.frozen)

    def _felled(self) -> int:
        return self.deeds.count((RUN, signal.SIGKILL))

    def _act(self, rng: random.Random) -> None:
        kind = rng.choices(list(self.weights), list(self.weights.values()))[0]
        victims = sorted(set(self.farm.processes(kind)) - set(self.frozen))
        if not victims:
            return
        pid = rng.choice(victims)
        freeze = rng.random() < self.freezes
        self.deeds.append((kind, signal.SIGSTOP if freeze else signal.SIGKILL))
        if freeze:
            leases = rng.uniform(0.2, 4.0)
            self.frozen[pid] = time.monotonic() + leases * self.farm.times["lease"]
            self.farm.note("frozen", kind=kind, pid=pid, leases=leases)
        else:
            self.farm.note("killed", kind=kind, pid=pid)
        send(pid, signal.SIGSTOP if freeze else signal.SIGKILL)


@dataclass(frozen=True)
class Outcome:
    """One run as the store has it."""

    state: RunState
    end: dict[str, object]
    points: dict[str, list[tuple[int, float]]]  # metric → (step, value) in order, but the worker's own
    files: dict[str, bytes]  # of the newest checkpoint


def outcome(store: Store, key: RunKey) -> Outcome:
    """Read one run from the store alone; it must have ended exactly once."""
    entries = RunLog(store, key).read_on().entries
    listed = [
        e.key for e in store.list(layout.logs_of(key.sweep)) if layout.split_log_entry(e.key)[0] == key.run
    ]
    assert len(listed) == len(entries), f"the log of {key.run} has a hole"
    state = fold(entries)
    kinds = [entry["kind"] for entry in entries]
    since = len(kinds) - kinds[::-1].index(log.REOPEN) if log.REOPEN in kinds else 0
    assert kinds[since:].count(log.END) == 1 and kinds[-1] == log.END, kinds
    copies = [
        k
        for r, k in (layout.split_log_entry(e.key) for e in store.list(layout.ends(key.sweep)))
        if r == key.run
    ]
    assert copies == [len(entries)], f"copies of the end of {key.run}: {copies} of {len(entries)}"
    points: dict[str, list[tuple[int, float]]] = {}
    for point in metrics.read(store, key.run, state.attempt):
        for name, value in point.values.items():
            if not name.startswith("system/"):
                points.setdefault(name, []).append((point.step, value))
    return Outcome(state, entries[-1], points, newest_files(store, key.run))


def newest_files(store: Store, run: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "restored"
        checkpoints.restore_newest(store, run, target, before=10**6)
        return {p.name: p.read_bytes() for p in sorted(target.rglob("*")) if p.is_file()}


def keys_of(job: Job) -> list[RunKey]:
    return [RunKey(job.name, run) for run in sweeps.run_ids(job)]


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def until(
    condition: Callable[[], object], seconds: float = 60.0, *, why: Callable[[], str] = lambda: ""
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"did not come true\n{why()}"
        time.sleep(0.05)


def often(**more: object) -> dict[str, object]:
    """What every job here has: checkpoints as often as they come, no budget that a killer could use up."""
    return {"checkpoint": Checkpointing(every=0.1, keep=2), "retries": 100, **more}


def _kind(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        environ = b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    if b"hostler.worker" in words:
        return WORKER if b"--session" in words else PARENT
    if b"role=supervisor" in words:
        return SUPERVISOR
    if b"role=spawner..." in words:
        return SPAWNER
    if b"role=warmparent" in words:
        return WARM
    return RUN if b"\0HOSTLER_MARK=" in environ else OTHER
