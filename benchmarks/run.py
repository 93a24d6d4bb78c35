"""Runs every bench_*.py beside it, prints one table, and exits 1 when a bound is missed.

python benchmarks/run.py [WORD…]     only those whose file name holds a WORD
HOSTLER_PEERS=/venv/bin/python       peers that are installed there are measured beside ours
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from row import Row

HEAD = ("benchmark", "ours", "floor", "ratio", "bound", "")


def main(words: Sequence[str]) -> int:
    names = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    chosen = [name for name in names if not words or any(word in name for word in words)]
    rows: list[Row] = []
    _print(HEAD)
    _print(("---",) * len(HEAD))
    for name in chosen:  # a benchmark's rows are there as soon as it ends
        rows += (measured := import_module(name).main())
        for row in measured:
            _print(_cells(row))
    return 0 if rows and all(row.kept for row in rows) else 1


def _print(cells: Sequence[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (f"{row.ours:.3g} {row.unit}", f"{row.floor:.3g} {row.unit}", f"{row.ratio:.2f}x")
    if row.bound is None:
        return (row.name, *numbers, "", "peer")
    return (row.name, *numbers, f"{row.bound:g}x", "kept" if row.kept else "MISSED")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
