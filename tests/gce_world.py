"""A project folder and an emulated Google: commands are typed here, VMs are processes with a bucket between.

`train.py` is a training whose weights depend on every step: who repeats or skips one ends with others. With
`hold` it waits before its last step while that file is there: nobody has to guess how long a run must take so
that something happens to it on the way.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import known_python
from cli_world import Answer, World, eventually
from gce_oracle import check_seen
from hostler.emulators.gce import AtDeadline, GceEmulator, Pace, emulator

TRAIN = """
import argparse, hashlib, json, os, time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--lr", default="1")
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--nap", type=float, default=0.2)
parser.add_argument("--hold", default="")
given = parser.parse_args()
place = Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "state.json")
state = json.loads(place.read_text()) if place.exists() else {"step": 0, "weights": given.lr}
while state["step"] < given.steps:
    time.sleep(given.nap)
    weights = hashlib.sha256(f"{state['weights']} {state['step']}".encode()).hexdigest()
    state = {"step": state["step"] + 1, "weights": weights}
    fresh = place.with_suffix(".tmp")
    fresh.write_text(json.dumps(state))
    fresh.replace(place)
    print(json.dumps({"step": state["step"], "loss": 1 / state["step"]}), flush=True)
    while given.hold and state["step"] == given.steps - 1 and os.path.exists(given.hold):
        time.sleep(0.1)
Path(os.environ["HOSTLER_OUTPUT_DIR"], "weights.txt").write_text(state["weights"])
"""
TIMES = {
    "HOSTLER_BEAT": "0.5",
    "HOSTLER_LEASE": "6",
    "HOSTLER_FLUSH": "0.3",
    "HOSTLER_SETTLE": "0.2",
    "HOSTLER_WAIT_MAX": "0.5",
    "HOSTLER_GRACE": "4",
    "HOSTLER_IDLE": "10",
    "HOSTLER_RETRY": "10",
    "HOSTLER_MACHINES": "30",
    "HOSTLER_STOCKOUT": "2",
    "HOSTLER_REPORT": "60",
    "HOSTLER_DISK_MIN": "1000",
    "HOSTLER_ACCOUNT": "1",
}
ZONES = ("us-central1-a", "us-central1-b", "us-east1-b")
FLEET = (
    "{{backend: gce, project: {project}, zones: [{zones}], machine: e2-standard-4, workers: {workers}{more}}}"
)


def weights(lr: object, steps: int = 6) -> str:
    """What an uninterrupted training ends with."""
    found = str(lr)
    for step in range(steps):
        found = hashlib.sha256(f"{found} {step}".encode()).hexdigest()
    return found


class CloudWorld(World):
    """`gce` is the emulated platform, with the bucket `runs`."""

    def __init__(self, root: Path, gce: GceEmulator) -> None:
        super().__init__(root)
        self.gce, self._held = gce, root / "hold"
        self.env = {**self.env, **TIMES, **gce.environ(), "HOSTLER_CHECKPOINT_EVERY": "0.2"}
        known_python.give_drivers(Path(self.env["HOSTLER_CACHE"]))
        self.write("train.py", TRAIN)

    def project(self, workers: int = 2, zones: Sequence[str] = ZONES, more: str = "") -> None:
        fleet = FLEET.format(
            project=self.gce.project,
            zones=", ".join(zones),
            workers=workers,
            more=f", {more}" if more else "",
        )
        text = f"name: cifar\nstore: gs://runs/cifar\ncheckpoint: {{every: 1s}}\nfleets:\n  burst: {fleet}\n"
        self.write("hostler.yaml", text)

    def sweep_file(self, runs: int, name: str = "grid", **fixed: object) -> None:
        values = {"lr": list(range(runs)), **fixed}
        text = json.dumps({"name": name, "command": "python train.py", "parameters": values})
        self.write(f"{name}.yaml", text)

    def hold(self) -> str:
        """The name of a file for which trainings wait, until `let_go`."""
        self._held.touch()
        return str(self._held)

    def let_go(self) -> None:
        self._held.unlink()

    def states(self, name: str = "grid") -> dict[str, int]:
        rows = self.run("status", name, "--json").json
        found: dict[str, int] = {}
        for row in rows["runs"] if isinstance(rows, dict) else rows:
            found[row["state"]] = found.get(row["state"], 0) + 1
        return found

    def weights(self, runs: int, name: str = "grid") -> dict[int, str]:
        """What the runs of a sweep have left, by their learning rate."""
        folder = self.folder / f"pulled-{name}"
        done = self.run("pull", name, "--outputs", "--to", str(folder), "-y", timeout=120)
        assert done.code == 0, done.err
        found = sorted(folder.rglob("weights.txt"))
        assert len(found) == runs
        return {n: path.read_text() for n, path in enumerate(found)}

    def until_gone(self, seconds: float = 120) -> None:
        """Until nothing costs or clutters any more."""
        end = time.monotonic() + seconds
        while self.gce.left():
            assert time.monotonic() < end, self.story()
            time.sleep(0.2)

    def story(self) -> str:
        """What there is, and what the VMs printed, for a test that failed."""
        said = [
            f"--- {one.name} {one.status}\n{self.gce.serial(one.name)[-4000:]}" for one in self.gce.machines()
        ]
        return "\n".join([*self.gce.left(), *said])

    def break_startup(self) -> None:
        """VMs that start from now on have no Python on their image."""
        world = self.gce._world
        world.guest_env = {**world.guest_env, "PATH": "/nowhere"}

    def launched(self, *words: str, timeout: float = 120) -> Answer:
        done = self.run("sweep", "-y", "--on", "burst", *words, timeout=timeout)
        assert done.code == 0, done.err + self.story()
        return done


def asked(world: CloudWorld, *methods: str) -> int:
    """How often the platform was asked for one of these."""
    return sum(seen.api.removeprefix("compute.") in methods for seen in world.gce.requests)


@contextmanager
def cloud(
    root: Path,
    *,
    scale: float = 20.0,
    at_deadline: AtDeadline = AtDeadline.KEEPS,
    pace: Pace | None = None,
    sshd: bool = False,
) -> Iterator[CloudWorld]:
    """Every request that is made in it is one that Google's own document allows."""
    with emulator(
        buckets=["runs"], scale=scale, strict=True, at_deadline=at_deadline, pace=pace, sshd=sshd
    ) as gce:
        yield CloudWorld(root, gce)
        check_seen(gce.requests)


class Weather(threading.Thread):
    """Takes VMs away while a sweep runs: each once, half of them without notice, one by a host error."""

    def __init__(self, world: CloudWorld, strikes: int, seed: int, pause: float = 1.5) -> None:
        super().__init__(daemon=True)
        self._world, self._left, self._pause = world, strikes, pause
        self._random, self._over = random.Random(seed), threading.Event()
        self.struck: list[tuple[str, str]] = []

    def run(self) -> None:
        while self._left and not self._over.wait(self._random.uniform(0.5, 1.5) * self._pause):
            self._strike()

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _strike(self) -> None:
        gce = self._world.gce
        there = [
            name for name in gce.names() if "working" in gce.serial(name) or "attempt" in gce.serial(name)
        ]
        there = [name for name in there if "no run is left" not in gce.serial(name)]
        if not there:
            return
        name, kind = self._random.choice(there), ("notice", "cut", "host error")[min(2, len(self.struck) % 3)]
        try:
            if kind == "host error":
                gce.host_error(name)
            else:
                gce.preempt(name, notice=kind == "notice")
        except LookupError:
            return  # it left by itself meanwhile
        self.struck.append((name, kind))
        self._left -= 1


__all__ = ["AtDeadline", "CloudWorld", "Weather", "asked", "cloud", "eventually", "weights"]
