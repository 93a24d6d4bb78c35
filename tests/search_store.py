"""A store with a search that is still running: sixty runs of five parameters, names and numbers."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from hostler.records.run import heartbeats
from hostler.records.series.points import Point
from hostler.spec.job import Job
from seen_world import HOSTILE, Seen

RUNS, ENDED = 60, 52
BEGUN = 1.79e9


def search_store(folder: Path) -> tuple[Seen, Job]:
    seen, chance = Seen(folder), random.Random(3)
    runs = [_drawn(chance) for _ in range(RUNS)]
    job = seen.submit("tpe-search", runs, method="tpe")
    for index, params in enumerate(runs[:56]):
        seen.claim(job, index)
        points = seen.curve(job, index, learned(index, params))
        if index < ENDED:
            seen.end(job, index, "done" if points[-1].step == 81 else "pruned", points)
    told = {job.run_id(i): {"attempt": 1, "step": 5, "metrics": {"accuracy": 0.6}} for i in range(ENDED, 56)}
    heartbeats.beat(seen.store, "w-1", 1, {"host": "desk", "pid": 1, "runs": told})
    return seen, job


def _drawn(chance: random.Random) -> dict[str, Any]:
    return {
        "lr": float(f"{10 ** chance.uniform(-4, -1):.3g}"),
        "width": chance.choice([32, 64, 128, 256]),
        "optimizer": chance.choice(["adam", "sgd", HOSTILE]),
        "dropout": round(chance.uniform(0, 0.5), 3),
        "augment": chance.random() < 0.5,
    }


def learned(index: int, params: dict[str, Any]) -> list[Point]:
    chance = random.Random(index)
    top = 0.95 - 0.07 * abs(math.log10(params["lr"] / 0.005)) ** 1.5 + 0.01 * math.log2(params["width"] / 32)
    top -= 0.04 * (params["optimizer"] == "sgd")
    points = []
    for step in range(1, chance.choice([27, 81, 81]) + 1):
        done = 1 - math.exp(-step / 12)
        values = {
            "accuracy": top * done + chance.gauss(0, 0.006),
            "loss": 2.3 * (1 - done) + 0.2 + chance.random() * 0.08,
            "epoch": float((step - 1) // 9 + 1),
        }
        points.append(Point(step, BEGUN + 60 * index + 2 * step, values))
    return points
