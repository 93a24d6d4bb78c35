"""A store and runs of it on a test cluster: what the tests of a real Slurm share."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hostler.backends.base import Launch, WorkerInfo
from hostler.backends.slurm.backend import SlurmBackend
from hostler.spec.job import Job
from hostler.spec.project import Fleet
from slurm_cluster import Cluster
from worker_world import World

COUNTS = """
import json, os, pathlib, sys, time
place = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]) / "at.json"
at = json.loads(place.read_text())["at"] if place.exists() else 0
stop = pathlib.Path(os.environ["HOSTLER_DIR"]) / "stop.json"
(pathlib.Path(os.environ["HOSTLER_DIR"]) / "joined.json").write_text("{}")
held = int(os.environ.get("HOLD", -1)) if os.environ["HOSTLER_ATTEMPT"] == "1" else -1
go = pathlib.Path(os.environ["MARKS"], "go")
for step in range(at, int(os.environ["STEPS"])):
    print(json.dumps({"step": step, "value": step * 2}), flush=True)
    while held == step and not stop.exists() and not go.exists():
        time.sleep(0.02)
    time.sleep(float(os.environ.get("PACE", "0.2")))
    new = place.with_name("new")
    new.write_text(json.dumps({"at": step + 1}))
    new.replace(place)
    if stop.exists():
        sys.exit(75)
"""  # a training that saves after each step and leaves when it is asked to; the first attempt waits at HOLD

TRAINS = """
import json, os, pathlib, random, sys, time
place = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]) / "model.json"
model = {"step": 0, "weights": [0.0] * 8, "momentum": [0.0] * 8, "chance": random.Random(7).getstate()}
model = json.loads(place.read_text()) if place.exists() else model
chance = random.Random()
go = pathlib.Path(os.environ.get("MARKS", ""), "go-" + os.environ.get("HOSTLER_RUN", ""))
for step in range(model["step"], int(os.environ["STEPS"])):
    while step == int(os.environ.get("HOLD", -1)) and not go.exists():
        time.sleep(0.02)
    version, state, gauss = model["chance"]
    chance.setstate((version, tuple(state), gauss))
    x = [chance.gauss(0, 1) for _ in range(8)]
    error = sum(w * v for w, v in zip(model["weights"], x)) - sum(n * v for n, v in enumerate(x))
    momentum = [0.9 * m + 0.1 * error * v for m, v in zip(model["momentum"], x)]
    weights = [w - 0.05 * m for w, m in zip(model["weights"], momentum)]
    model = {"step": step + 1, "weights": weights, "momentum": momentum, "chance": chance.getstate()}
    print(json.dumps({"step": step, "loss": error * error}), flush=True)
    new = place.with_name("new")
    new.write_text(json.dumps(model))
    new.replace(place)
    time.sleep(float(os.environ.get("PACE", "0")))
print("weights", json.dumps(model["weights"]), flush=True)
"""  # a linear model, by SGD with momentum; the order of its examples is part of what it saves; waits at HOLD


class SlurmWorld:
    def __init__(self, site: Cluster, world: World, name: str = "tau") -> None:
        self.site, self.world, self.name = site, world, name
        self.backend = SlurmBackend()

    def fleet(self, workers: int = 2, **options: Any) -> Fleet:
        own = {key: options.pop(key) for key in ("runs_per_worker", "slots", "resources") if key in options}
        return Fleet(name=self.name, backend="slurm", workers=workers, options=options, **own)

    def launch(self, job: Job, runs: int | None = None, **more: Any) -> Launch:
        return Launch(
            store=self.world.store.url,
            sweeps=(job.name,),
            python=sys.executable,
            runs=job.count if runs is None else runs,
            logs=f"{self.world.store.url}/fleets/{self.name}/logs",
            **more,
        )

    def start(self, fleet: Fleet, job: Job, **more: Any) -> Sequence[WorkerInfo]:
        return self.backend.start(self.backend.plan(fleet, self.launch(job, **more)))

    def until(self, true: Callable[[], object], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.1)

    def until_gone(self, fleet: Fleet, seconds: float = 60) -> None:
        self.until(lambda: not self.backend.list(fleet), seconds)

    def states(self, job: Job) -> list[str]:
        return [self.world.state(job, index).state for index in range(job.count)]

    def steps(self, job: Job, index: int = 0) -> list[int]:
        """Every step that was printed, by all attempts together, thrown away ones included."""
        return [int(n) for n in re.findall(r'"step": (\d+)', self.world.log(job, index))]

    def told(self) -> str:
        logs = sorted(Path(self.world.store.url).glob("fleets/*/logs/*.log"))
        said = [f"== {path.name}\n{path.read_text(errors='replace')[-800:]}" for path in logs[-4:]]
        return "\n".join([str(self.site.states()), *said])
