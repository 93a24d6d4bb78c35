"""A farm to which a schedule happens: kills, freezes, wrong clocks, bad disks and wires, a person, and
workers of an older version.

Each deed is written into the history as it is done. When the last one is over everything is mended, the
person resumes what was stopped, and all runs must end as if nothing had happened.
"""

from __future__ import annotations

import io
import json
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from killer import PARENT, RUN, WORKER, Farm, send, until
from proxy import Choose, Fault, Proxy
from recorder import Recorder, undisturbed
from schedule import Deed
from small_disk import Disk

import servers
from hostler import settings
from hostler.records import layout, project
from hostler.records.rows import rows

NAME = "mixed"
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
BROKEN = Path(__file__).parent / "broken_disk"
TRY_AGAIN = 75  # exit code of a command whose store does not answer
PAUSED = 120.0  # seconds between a seal and the first deletion, of a packer that is killed meanwhile
UNMET = 30.0  # seconds for which a fault lasts longer where nobody has met it yet
CLOCKS = 2  # workers with a wrong clock, at most, at a time
OLDER = Path(__file__).parents[1] / "golden" / "older_store.tar.xz"  # a store, with the hostler of its time

# Saves after every third step, sleeps where it can be hit; its weights follow from all its steps.
SCRIPT = """
import hashlib, json, os, sys, time
i = int(sys.argv[sys.argv.index("--i") + 1])
pace = float(os.environ.get("PACE", "1"))
path = os.path.join(os.environ["HOSTLER_CHECKPOINT_DIR"], "weights")
state = open(path).read() if os.path.exists(path) else "0 "
step, weights = int(state.split(" ")[0]), state.split(" ")[1]
while step < 12:
    weights = hashlib.sha256(f"{weights} {step} {i}".encode()).hexdigest()
    print(json.dumps({"step": step, "loss": int(weights[:6], 16)}), flush=True)
    step += 1
    time.sleep(0.1 * pace)
    if step % 3 == 0:
        with open(path + ".tmp", "w") as file:
            file.write(f"{step} {weights}")
        os.replace(path + ".tmp", path)
        time.sleep(0.2 * pace)
"""
SWEEP = """
name: {name}
command: {python} train.py
checkpoint: {{every: 0.1s, keep: 2}}
retries: 1000
limits: {{failures: 1000}}
parameters:
  i: {values}
"""


class Hang(AssertionError):
    """The farm has stopped, and its runs are not over."""


def leads_to(url: str, endpoint: str) -> dict[str, str]:
    """Variables by which the driver of this store's bucket finds its server at `endpoint`."""
    return {
        "s3": {"AWS_ENDPOINT_URL": endpoint},
        "gs": {"STORAGE_EMULATOR_HOST": endpoint},
        "az": {"AZURE_STORAGE_ENDPOINT": f"{endpoint}/{servers.AZURE_ACCOUNT}"},
    }[url.partition("://")[0]]


@dataclass
class MixedFarm(Farm):
    """A farm whose workers reach the store by one of several wires, and may have a disk that breaks."""

    wires: Sequence[Proxy] = ()
    disk: Disk | None = None
    _wired: list[tuple[subprocess.Popen[bytes], int]] = field(default_factory=list)

    def start(self, *words: str, surroundings: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        own = {
            "BROKEN_DISK": str(self.flag),
            "BROKEN_STORE": self.url,
            "PYTHONPATH": f"{BROKEN}:{self.environ['PYTHONPATH']}",
        }
        if not self.wires:
            return super().start(*words, surroundings={**own, **(surroundings or {})})
        used = [wire for parent, wire in self._wired if parent.poll() is None]
        wire = min(range(len(self.wires)), key=used.count)
        own |= leads_to(self.url, self.wires[wire].url)
        parent = super().start(*words, surroundings={**own, **(surroundings or {})})
        self._wired.append((parent, wire))
        return parent

    def start_older(self) -> subprocess.Popen[bytes]:
        """A parent and a worker of the version that the older store was made by."""
        place = self.folder / "older"
        if not place.exists():
            with tarfile.open(OLDER) as archive:
                [packed] = [one for one in archive.getmembers() if one.isfile() and "library/" in one.name]
                file = archive.extractfile(packed)
                assert file is not None
                with zipfile.ZipFile(io.BytesIO(file.read())) as library:
                    library.extractall(place)
        return self.start(surroundings={"PYTHONPATH": f"{BROKEN}:{place}"})

    @property
    def flag(self) -> Path:
        """While this file is there, the disk of the workers answers EIO."""
        return self.folder / "disk-is-broken"

    @property
    def sweep_file(self) -> Path:
        return self.code / "sweep.yaml"

    def write_sweep(self, count: int) -> None:
        text = SWEEP.format(name=NAME, python=sys.executable, values=list(range(count)))
        self.sweep_file.write_text(text)


@dataclass(frozen=True)
class Mending:
    """The end of a fault: not before somebody has met it, or a while has gone by."""

    when: float
    thing: str
    mend: Callable[[], object]
    met: Callable[[], bool]


@dataclass
class Mixer:
    """Does the deeds of a schedule to a farm, and mends what they broke when their time has come."""

    farm: MixedFarm
    history: Recorder
    runs: int
    workers: int
    hits: Counter[str] = field(default_factory=Counter)  # deeds that somebody met, by kind
    _faulty: dict[str, list[Choose]] = field(default_factory=dict)  # by wire
    _mend: list[Mending] = field(default_factory=list)
    _frozen: set[int] = field(default_factory=set)
    _clocks: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _older: subprocess.Popen[bytes] | None = None
    _to_pack: Deed | None = None  # the person packs the sweep when it is over
    _orders: list[Deed] = field(default_factory=list)  # for the person, who does one thing at a time
    _refused: bool = False  # the last edit of the sweep file has not reached the store
    _over: threading.Event = field(default_factory=threading.Event)

    def prepare(self) -> None:
        """The project, its first sweep, and nobody at work."""
        times = self.farm.times
        timing = settings.Timing(beat=times["beat"], lease=times["lease"])
        project.ensure(self.farm.store, "farm", timing)
        (self.farm.code / "hostler.yaml").write_text(f"name: farm\nstore: {self.farm.url}\n")
        (self.farm.code / "train.py").write_text(SCRIPT)
        self.farm.write_sweep(self.runs)
        for _ in range(10):  # a busy server's "try again" is followed: no fault has happened yet
            done = self._said("sweep", str(self.farm.sweep_file), "--no-start", "-y")
            if done != TRY_AGAIN:
                break
        assert done == 0, self.history.history.path.read_text()[-1000:]

    def carry_out(self, deeds: Sequence[Deed], seconds: float) -> None:
        """All deeds at their moments, then all mended, all resumed, and all ended."""
        person = threading.Thread(target=self._person)
        person.start()
        try:
            self.farm.tend(self.workers)
            until(lambda: self.farm.processes(RUN), 120, why=self.farm.said)
            begun = time.monotonic()
            for deed in deeds:
                self._wait(begun + deed.at)
                self._do(deed)
        finally:
            self._over.set()
            while self._mend:
                self._wait(time.monotonic() + 0.1)
            person.join()
        self._finish(seconds)

    def _wait(self, until: float) -> None:
        while True:
            self._mend_due(time.monotonic())
            self.farm.tend(self.workers)
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.1))

    def _mend_due(self, now: float) -> None:
        for due in [one for one in self._mend if one.when <= now]:
            if due.met() or due.when + UNMET <= now:
                self._mend.remove(due)
                due.mend()
                self.history.add("mended", thing=due.thing)

    def _do(self, deed: Deed) -> None:
        self.history.add("deed", deed=vars(deed))
        hurt = self.farm.times["lease"] * deed.amount
        how: dict[str, Callable[[Deed, float], object]] = {
            "kill": self._kill,
            "freeze": self._freeze,
            "clock": self._clock,
            "full": self._full,
            "read-only": self._read_only,
            "eio": self._eio,
            "older": self._work_with_older,
            "pack": lambda deed, _: setattr(self, "_to_pack", deed),
            "person": lambda deed, _: self._orders.append(deed),
        }
        how.get(deed.kind, self._wire)(deed, hurt)

    def _hit(self, deed: Deed, **facts: object) -> None:
        """Somebody has met what was done."""
        self.hits[deed.kind] += 1
        self.history.add("hit", deed=vars(deed), **facts)

    def missed(self, deeds: Sequence[Deed]) -> list[str]:
        """Kinds of fault that nobody met, of those that this machine can make."""
        cannot = set() if self.farm.disk else {"full", "read-only"}
        cannot |= set() if Path(FAKETIME).exists() else {"clock"}
        return sorted({deed.kind for deed in deeds} - set(self.hits) - cannot)

    def _later(
        self, seconds: float, thing: str, mend: Callable[[], object], met: Callable[[], bool] = lambda: True
    ) -> None:
        self._mend.append(Mending(time.monotonic() + seconds, thing, mend, met))

    def _victim(self, deed: Deed) -> int | None:
        """A process of the kind that is meant; where there is none, another that is sure to be missed."""
        for kind in (deed.what, RUN, WORKER, PARENT):
            if victims := sorted(set(self.farm.processes(kind)) - self._frozen):
                return victims[int(deed.pick * len(victims))]
        return None

    def _kill(self, deed: Deed, hurt: float) -> None:
        pid = self._victim(deed)
        if pid is not None:
            send(pid, signal.SIGKILL)
            self.history.add("killed", kind=deed.what, pid=pid)
            self._hit(deed)

    def _freeze(self, deed: Deed, hurt: float) -> None:
        pid = self._victim(deed)
        if pid is None:
            return

        def goes_on() -> None:
            self._frozen.discard(pid)
            send(pid, signal.SIGCONT)

        send(pid, signal.SIGSTOP)
        self._frozen.add(pid)
        self._later(hurt, f"{deed.what} {pid} goes on", goes_on)
        self.history.add("frozen", kind=deed.what, pid=pid, leases=deed.amount)
        self._hit(deed)

    def _clock(self, deed: Deed, hurt: float) -> None:
        """A worker starts with the right time; its clock jumps, or slows down, while it works."""
        self._clocks = [parent for parent in self._clocks if parent.poll() is None]
        if len(self._clocks) >= CLOCKS or not Path(FAKETIME).exists():
            return
        file = self.farm.folder / f"clock-{len(list(self.farm.folder.glob('clock-*')))}"
        file.write_text("+0\n")
        surroundings = {
            "LD_PRELOAD": FAKETIME,
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        hours = {"ahead": f"+{deed.amount}h", "back": f"-{deed.amount}h", "half": "+0 x0.5"}[deed.what]
        self._clocks.append(self.farm.start(surroundings=surroundings))
        self._later(2.0, f"clock is set {hours}", lambda: file.write_text(f"{hours}\n"))
        self._hit(deed)

    def _work_with_older(self, deed: Deed, hurt: float) -> None:
        """One worker of the older version, beside those of this one, until nothing is left."""
        if self._older is None or self._older.poll() is not None:
            self._older = self.farm.start_older()
            self.history.add("older", pid=self._older.pid)
            self._hit(deed)

    def _full(self, deed: Deed, hurt: float) -> None:
        if self.farm.disk:
            self.farm.disk.fill()
            self._later(hurt, "disk has room", self.farm.disk.free)
            self._hit(deed)

    def _read_only(self, deed: Deed, hurt: float) -> None:
        if self.farm.disk:
            done = any(self.farm.disk.remount("ro") or time.sleep(0.01) for _ in range(50))
            self.history.add("read-only", done=done)
            self._later(hurt, "disk can be written to", self.farm.disk.free)
            if done:
                self._hit(deed)

    def _eio(self, deed: Deed, hurt: float) -> None:
        met = self.farm.flag.with_name(f"{self.farm.flag.name}-met")
        met.unlink(missing_ok=True)
        self.farm.flag.touch()

        def mend() -> None:
            self.farm.flag.unlink(missing_ok=True)
            if met.exists():
                self._hit(deed)

        self._later(hurt, "disk is whole", mend, met.exists)

    def _wire(self, deed: Deed, hurt: float) -> None:
        wire = self.farm.wires[int(deed.pick * len(self.farm.wires))]
        rng, lock = random.Random(deed.pick), threading.Lock()
        faults = {
            "cut": ([Fault.DROP_BEFORE], 1.0),
            "delay": ([Fault.SLOW_BEFORE, Fault.SLOW_AFTER], 0.5),
            "packets": ([Fault.DROP_BEFORE, Fault.DROP_AFTER, Fault.CUT_BODY], 0.5),
            "lost": ([Fault.DROP_AFTER, Fault.LOSE_503, Fault.LOSE_500], 0.3),
            "token": ([Fault.DENY_403], 1.0),  # it has expired: nothing is allowed until there is a new one
            "busy": ([Fault.REFUSE_429 if deed.what == "429" else Fault.REFUSE_503], 0.5),
        }
        among, share = faults[deed.kind]

        met = threading.Event()

        def choose(method: str, path: str) -> Fault | None:
            with lock:
                if rng.random() >= share:
                    return None
                if not met.is_set():
                    met.set()
                    self._hit(deed, request=f"{method} {path.partition('?')[0]}")
                return rng.choice(among)

        faulty = self._faulty.setdefault(wire.url, [])
        faulty.insert(0, choose)  # the newest comes first: an older one that nobody has met outlives it

        def first(method: str, path: str) -> Fault | None:
            return next((fault for one in list(faulty) if (fault := one(method, path))), None)

        wire.delay, wire.choose = 2.0, first
        what = f"wire is whole after {deed.kind}"
        self._later(hurt, what, lambda: faulty.remove(choose), met.is_set)

    def _person(self) -> None:
        while not self._over.is_set() or self._orders:
            if not self._orders:
                self._over.wait(0.1)
                continue
            deed = self._orders.pop(0)
            self._hit(deed, code=self._ordered(deed))

    def _ordered(self, deed: Deed) -> int:
        """The exit code of what the person types."""
        if deed.what == "edit":
            self.runs += 1
            self.farm.write_sweep(self.runs)
            code = self._said("sweep", str(self.farm.sweep_file), "--no-start", "-y")
            self._refused = code != 0
            return code
        name = f"{NAME}/{int(deed.pick * self.runs)}"
        more = {"resume": ["--no-start", "-y"], "retry": ["--fresh", "--no-start", "-y"]}
        return self._said(*deed.what.split(), name, *more.get(deed.what, []))

    def _said(self, *words: str) -> int:
        return self.history.person(*words, cwd=self.farm.code)

    def _finish(self, seconds: float) -> None:
        """What a person does in the end: the last sweep file once more, and resume until all are done. While
        the store changes, a busy machine has all the time of the test; `seconds` without a change are a
        hang."""
        if self._refused:
            assert self._said("sweep", str(self.farm.sweep_file), "--no-start", "-y") == 0
        self._work_off(seconds)
        if self._to_pack:
            self._seal_and_try_again(self._to_pack)
            self._work_off(seconds)

    def _seal_and_try_again(self, deed: Deed) -> None:
        """A packer is killed once its seal stands, and a run is tried again."""
        deadline = time.monotonic() + 120.0
        while not self._is_sealed():
            assert time.monotonic() < deadline, "nothing was packed"
            with self._packer(PAUSED) as packer:
                while packer.poll() is None and not self._is_sealed():
                    time.sleep(0.05)
                packer.kill()
        self.history.add("killed", kind="packer")
        run = f"{NAME}/{int(deed.pick * self.runs)}"
        assert self._said("retry", run, "--fresh", "--no-start", "-y") == 0
        self._hit(deed, run=run)

    def _is_sealed(self) -> bool:
        return any(self.farm.store.list(layout.seals(NAME)))

    def _packer(self, pause: float) -> subprocess.Popen[bytes]:
        """`hostler pack` that waits so long between its seal and its first deletion."""
        code = f"from hostler.records.packs import packer; packer.PAUSE = {pause}; "
        code += "import sys; from hostler.cli.main import main; sys.argv[0] = 'hostler'; main()"
        words = [sys.executable, "-c", code, "pack", NAME, "--store", self.farm.url]
        with open(self.farm.folder / "packer.log", "ab") as said:
            return subprocess.Popen(words, env=self.farm.environ, stdout=said, stderr=said)

    def _work_off(self, seconds: float) -> None:
        """Until all runs are done and the workers have left."""
        asked, seen = 0.0, frozenset[str]()
        deadline = time.monotonic() + seconds
        while open_runs := self.open_states():
            if (there := self._moved()) != seen:
                seen, deadline = there, time.monotonic() + seconds
            if time.monotonic() > deadline:
                raise Hang(f"nothing happens for {seconds:g} s, and still {open_runs}\n{self.farm.said()}")
            self.farm.tend(self.workers)
            if set(open_runs) & {"stopped", "paused"} and time.monotonic() > asked:
                self._said("resume", NAME, "--no-start", "-y")
                asked = time.monotonic() + 3.0
            time.sleep(0.3)
        with ExitStack() as stack:
            stack.callback(self.farm.start().wait, 120)
            for parent in self.farm.parents:
                stack.callback(parent.wait, max(1.0, deadline - time.monotonic()))

    def _moved(self) -> frozenset[str]:
        """Log entries and checkpoints of all runs: while these change, the farm is at work."""
        kept = (layout.logs_of(NAME), "runs/")
        return frozenset(one.key for prefix in kept for one in self.farm.store.list(prefix))

    def open_states(self) -> list[str]:
        """States of the runs that have not ended for good."""
        found = [row.state for row in rows(self.farm.store)]
        return [state for state in found if state not in ("done", "failed", "diverged")]

    def expected(self) -> dict[str, Sequence[str]]:
        """Every run that was submitted, by number, and its arguments."""
        rows = json.loads(self.history.hostler("status", NAME, "--json", cwd=self.farm.code).stdout)
        words = {row["id"]: ("--i", str(row["params"]["i"])) for row in rows}
        assert sorted(int(word) for _, word in words.values()) == list(range(self.runs)), words
        return words

    def judged(self) -> list[str]:
        if self._to_pack:
            self.history.look()
            with self._packer(0.0) as packer:  # nobody is at work, and nobody looks
                assert packer.wait(120) == 0, (self.farm.folder / "packer.log").read_text()
            assert not any(self.farm.store.list(layout.logs_of(NAME)))
        words = self.expected()
        self.history.expect(undisturbed(SCRIPT, self.farm.folder / "undisturbed", words))
        return self.history.close(list(words), self.farm.cache, self.farm.folder / "tmp")
