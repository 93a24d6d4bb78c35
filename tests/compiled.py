"""Bytecode of test files, which pytest makes as it collects them, made once before each worker would make it.

A part of the files goes to each core. Pytest rewrites assertions, so its bytecode is not Python's own; in a
fresh checkout that takes longer than all else about collecting.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

FEW = 40  # files that each worker may as well compile itself
TAIL = f".{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc"


def compile_tests(words: Sequence[str], environ: Mapping[str, str], cores: int) -> int:
    """How many of the files below these paths had no bytecode, and have it now."""
    found = stale(words)
    if len(found) < FEW:
        return 0
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-qq",
        "-p",
        "no:xdist",
        "--continue-on-collection-errors",
    ]
    started = [
        subprocess.Popen(
            [*command, *part], env=dict(environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for part in shares(found, max(1, cores))
    ]
    for process in started:
        process.wait()  # whatever is wrong with a file is said when it is collected to be run
    return len(found)


def stale(words: Sequence[str]) -> list[Path]:
    """Test files below these paths whose bytecode is missing, or older than they are."""
    found = [path for word in words for path in [Path(word)] if path.exists()]
    files = [
        file for path in found for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
    ]
    return [file for file in files if file.suffix == ".py" and not _is_fresh(file)]


def _is_fresh(file: Path) -> bool:
    own = Path(importlib.util.cache_from_source(os.fspath(file)))
    made = own.with_name(file.stem + TAIL)
    return made.exists() and made.stat().st_mtime >= file.stat().st_mtime


def shares(files: Sequence[Path], count: int) -> list[list[Path]]:
    """The files in so many parts of about the same length."""
    parts: list[list[Path]] = [[] for _ in range(count)]
    sizes = [0] * count
    for file in sorted(files, key=lambda file: -file.stat().st_size):
        least = sizes.index(min(sizes))
        parts[least].append(file)
        sizes[least] += file.stat().st_size
    return [part for part in parts if part]
