"""Stores to look at: sweeps as their workers would have left them, with curves, errors and odd values."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostler import settings
from hostler.records import layout, project
from hostler.records.body import encode
from hostler.records.run import heartbeats
from hostler.records.series.logs import LogWriter
from hostler.records.series.metrics import MetricWriter, summary
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Store, open_store
from hostler.store.base import TEMPORARY

HOSTILE = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>$\\frac{'
TRACE = 'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\nValueError: {message}\n'


class Seen:
    """A store in a folder; `submit` a sweep, then say what became of its runs."""

    def __init__(self, folder: Path, lease: float | None = None) -> None:
        """`lease`: seconds for which a worker that says nothing is believed to be there."""
        self.folder = folder
        self.store: Store = open_store(str(folder))
        timing = settings.timing(one_machine=True)
        project.ensure(self.store, "seen", replace(timing, lease=lease) if lease else timing)

    @property
    def url(self) -> str:
        return str(self.folder)

    def submit(self, name: str, runs: Iterable[Mapping[str, Any]], **given: Any) -> Job:
        facts = {"metric": "accuracy", "goal": "max", "method": "grid", **given}
        job = Job(name=name, command=("python", "train.py"), runs=tuple(dict(r) for r in runs), **facts)
        sweeps.submit(self.store, job)
        return job

    def claim(self, job: Job, index: int, *, session: str = "w-1", host: str = "desk", **facts: Any) -> None:
        self.entry(job, index, 1, {"kind": "claim", "session": session, "host": host, "after": None, **facts})

    def beat(self, job: Job, index: int, sequence: int, step: int, **metrics: float) -> None:
        runs = {job.run_id(index): {"attempt": 1, "step": step, "metrics": metrics}}
        heartbeats.beat(self.store, "w-1", sequence, {"host": "desk", "pid": 1, "runs": runs})

    def log(self, job: Job, index: int, text: str) -> None:
        LogWriter(self.store, job.run_id(index), 1).write(text.encode())

    def curve(self, job: Job, index: int, points: Iterable[Point]) -> list[Point]:
        known = list(points)
        MetricWriter(self.store, job.run_id(index), 1).write(known)
        return known

    def end(
        self,
        job: Job,
        index: int,
        state: str = "done",
        points: Iterable[Point] = (),
        message: str = "",
        **facts: Any,
    ) -> None:
        known = list(points)
        end: dict[str, Any] = {
            "kind": "end",
            "attempt": 1,
            "state": state,
            "host": "desk",
            "attempts": 1,
            "started": 1.79e9 + 60 * index,
            "seconds": 60.0 + index % 17,
            "total": 60.0 + index % 17,
            "step": known[-1].step if known else 0,
            "metrics": summary(known),
            **facts,
        }
        if message:
            failure = {"kind": "exception", "message": message, "traceback": TRACE.format(message=message)}
            end |= {"failure": failure, "signature": message[:20]}
        self.entry(job, index, 2, end)
        self._write(layout.end(job.name, job.run_id(index), 2), json.loads(json.dumps(end)))

    def entry(self, job: Job, index: int, k: int, record: dict[str, Any]) -> None:
        self._write(layout.log_entry(job.name, job.run_id(index), k), record)

    def _write(self, key: str, record: dict[str, Any]) -> None:
        """Whole at once, since somebody may read; without the flush of a put, which thousands of entries
        would wait for."""
        path = self.folder / key
        making = path.with_name(f"{TEMPORARY}{path.name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        making.write_bytes(encode(record))
        making.replace(path)


def learning(params: Mapping[str, Any], steps: int = 40) -> list[Point]:
    """What a run with these parameters would log: better near lr = 0.01, noisier with other seeds."""
    lr, seed = float(params.get("lr", 0.01)), int(params.get("seed", 0))
    wide = 0.03 if params.get("model") == "resnet50" else 0.0
    noise = random.Random(f"{lr} {seed}")
    top = 0.93 + wide - 0.09 * abs(math.log10(lr / 0.01))
    points = []
    for step in range(1, steps + 1):
        done = 1 - math.exp(-step / (6 + 4 * abs(math.log10(lr / 0.01))))
        value = top * done + noise.gauss(0, 0.008)
        points.append(
            Point(
                step,
                1.79e9 + step,
                {"accuracy": value, "loss": 2.3 * (1 - done) + 0.1 + noise.random() * 0.05},
            )
        )
    return points


def gallery(folder: Path, lease: float | None = None) -> Seen:
    """A store with something of everything."""
    seen = Seen(folder, lease)
    models = ("resnet18", "resnet50")
    grid = [
        {"lr": lr, "model": model, "seed": seed, "epochs": 40}
        for lr in (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
        for model in models
        for seed in range(3)
    ]
    job = seen.submit("cifar-grid", grid)
    for index, params in enumerate(grid):
        seen.claim(job, index)
        if params["lr"] == 0.1 and params["seed"] == 2:
            seen.end(job, index, "failed", message="CUDA out of memory: tried to allocate 2.0 GB")
        elif params["lr"] == 0.1 and params["seed"] == 1:
            seen.end(job, index, "diverged", seen.curve(job, index, learning(params, 9)))
        elif params["lr"] == 0.03 and params["seed"] == 2:
            seen.curve(job, index, learning(params, 17))
        else:
            seen.end(job, index, "done", seen.curve(job, index, learning(params)))
            seen.log(job, index, "".join(f"epoch {n} of 40\n" for n in range(1, 41)))
    running = {i: learning(p, 17)[-1] for i, p in enumerate(grid) if p["lr"] == 0.03 and p["seed"] == 2}
    facts = {
        job.run_id(i): {"attempt": 1, "step": p.step, "metrics": dict(p.values)} for i, p in running.items()
    }
    heartbeats.beat(seen.store, "w-1", 1, {"host": "desk", "pid": 1, "runs": facts})
    odd = [{"lr": HOSTILE, "x": 1}, {"lr": 0.1, "x": "text"}, {"lr": None, "x": float("nan")}, {"lr": [1, 2]}]
    strange = seen.submit("odd-values", odd, title=HOSTILE, tags=(HOSTILE,))
    values = (math.nan, math.inf, -math.inf, 0.5)
    for index, value in enumerate(values):
        seen.claim(strange, index)
        points = [Point(1, 1.0, {"accuracy": value, HOSTILE: 1.0}), Point(2, 2.0, {"accuracy": 0.25})]
        if index == 3:
            seen.end(strange, index, "failed", message=HOSTILE)
        else:
            seen.end(strange, index, "done", seen.curve(strange, index, points[: 1 if index else 2]))
        seen.log(
            strange,
            index,
            f"{HOSTILE}\n\x1b[31mred\x1b[0m \udcff".encode("utf-8", "surrogateescape").decode(
                "utf-8", "replace"
            ),
        )
    seen.submit("empty", [])
    return seen
