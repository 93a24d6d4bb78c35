"""A printed line with lines of tools recognised, against the same without: most lines hold no metric."""

from __future__ import annotations

import random
import statistics
import time

from row import Row

from hostler.records.series.picker import Picker
from hostler.spec.job import MetricSource

LINES = 2000
ROUNDS = 15
SAME = "2026-01-02 10:11:12,{:03} - loader - INFO - read shard {:05} of 01024\n"
METRIC = "epoch {1} | loss=0.{0:03} | lr=0.001\n"


def main() -> list[Row]:
    words = random.Random(1)
    other = "".join(
        f"{n}: " + " ".join(words.choices(("alpha", "reads", "the", "disk", "shard", "twice"), k=10)) + "\n"
        for n in range(LINES)
    )
    same = "".join(SAME.format(n % 1000, n) for n in range(LINES))
    metric = "".join(METRIC.format(n % 1000, n) for n in range(LINES))
    json = "".join(f'{{"step": {n}, "loss": 0.5}}\n' for n in range(LINES))
    return [
        _row("a printed line of a logger", same, 1.6),
        _row("a printed line of other words each time", other, 6.1),
        _row("a printed line of JSON", json, 1.3),
        _row("a printed line of a tool, as a point", metric, 20.0),
    ]


def _row(name: str, text: str, bound: float) -> Row:
    ours, floor = list[float](), list[float]()
    for _ in range(ROUNDS):
        ours.append(_each(text, MetricSource()))
        floor.append(_each(text, MetricSource(tools=False)))
    return Row(name, statistics.median(ours), statistics.median(floor), bound, "us")


def _each(text: str, source: MetricSource) -> float:
    picker, data = Picker(source), text.encode()
    begun = time.process_time()
    picker.feed(data, 1.0)
    return (time.process_time() - begun) / LINES * 1e6
