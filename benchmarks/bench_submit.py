"""Submitting a sweep of a million runs against one of eight: the same writes, about the same time.

Without code and data, which do not depend on how many runs there are; into a folder.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

from row import Row

from hostler.backends.project_file import load_sweep
from hostler.fleet.sweep import draft_sweep, edited
from hostler.records.sweep import sweeps
from hostler.spec.project import default_project
from hostler.store import open_store
from hostler.store.memory import MemoryStore

TIMES = 15


def main() -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        return [
            Row("submit 1,000,000 runs (8 runs)", _seconds(folder, 100), _seconds(folder, 2), 1.5, "s"),
            Row("writes to submit them (8 runs)", _writes(folder, 100), _writes(folder, 2), 1.0, "writes"),
        ]


def _seconds(folder: Path, count: int) -> float:
    return median(_timed(lambda n=n: _submit(folder, count, f"s{count}-{n}")) for n in range(TIMES))  # type: ignore[misc]


def _timed(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def _submit(folder: Path, count: int, name: str) -> None:
    store = open_store(str(folder / "store"))
    job = replace(draft_sweep(load_sweep(_file(folder, count), default_project(folder))), name=name)
    assert sweeps.submit(store, edited(store, None, job).job)


def _writes(folder: Path, count: int) -> float:
    store, counted = MemoryStore(), list[str]()
    store.before = lambda op, key: counted.append(op) if op == "put" else None
    job = draft_sweep(load_sweep(_file(folder, count), default_project(folder)))
    assert sweeps.submit(store, edited(store, None, job).job)
    return float(len(counted))


def _file(folder: Path, count: int) -> Path:
    axes = "".join(f"  {axis}: {{start: 0, step: 1, count: {count}}}\n" for axis in "abc")
    (folder / "sweep.yaml").write_text(f"command: python train.py\nparameters:\n{axes}")
    return folder / "sweep.yaml"


if __name__ == "__main__":
    for row in main():
        print(row.name, f"{row.ours:.4g}", f"{row.floor:.4g}", "bound", row.bound)
