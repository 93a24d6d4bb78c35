"""Planning a grid of 1,000,000 cells, each as one line of JSON, and the memory it takes.

The floor is `itertools.product` as dicts with the same line for each. Of memory it is one megabyte: the cells
must come one after the other, never all at once.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

from row import Row

from hostler.spec.space import parse

AXES: dict[str, list[Any]] = {
    "lr": [10.0**-k for k in range(1, 11)],
    "width": list(range(10)),
    "model": [f"model{n}" for n in range(10)],
    "seed": list(range(10)),
    "dropout": [n / 10 for n in range(10)],
    "epochs": list(range(10)),
}
CELLS = 1_000_000
TIMES = 3


def main() -> list[Row]:
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(TIMES):
        floor.append(_seconds(_product()))
        ours.append(_seconds(parse(AXES).cells()))
    peak = _peak()
    return [
        Row(
            "plan 1,000,000 cells with a JSON line each",
            statistics.median(ours),
            statistics.median(floor),
            1.1,
            "s",
        ),
        Row("memory to plan 1,000,000 cells", peak / 1e6, 1, 0.3, "MB"),
    ]


def _product() -> Iterator[dict[str, Any]]:
    return (dict(zip(AXES, cell, strict=True)) for cell in itertools.product(*AXES.values()))


def _seconds(cells: Iterator[dict[str, Any]]) -> float:
    encode = json.JSONEncoder().encode
    begun = time.perf_counter()
    with open(os.devnull, "w") as lines:
        count = 0
        for cell in cells:
            lines.write(encode(cell) + "\n")
            count += 1
    assert count == CELLS
    return time.perf_counter() - begun


def _peak() -> int:
    tracemalloc.start()
    for _ in parse(AXES).cells():
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
