"""What a machine that has run hostler before has in its cache: found out once per test process.

That is what its Python is, and a bucket's driver, packed for machines that have none.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from pathlib import Path

from hostler.remote import wheels
from hostler.worker.prepare import packages


@functools.cache
def _answer() -> tuple[str, bytes]:
    """The file's name and content, as a worker writes it."""
    name = f"{hashlib.sha256(sys.executable.encode()).hexdigest()[:16]}.json"
    with tempfile.TemporaryDirectory() as folder:
        packages._keep(Path(folder, name), packages._ask(sys.executable))
        return name, Path(folder, name).read_bytes()


def give(cache: Path) -> None:
    """A worker with this cache asks nothing, unless the Python has changed meanwhile."""
    name, content = _answer()
    folder = cache / "interpreters"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def without_shims(path: str) -> str:
    """PATH with this Python's own folder in place of pyenv's, whose programs ask bash for each start."""
    own = str(Path(sys.base_prefix, "bin"))
    folders = (own if part.endswith("/.pyenv/shims") else part for part in path.split(os.pathsep))
    return os.pathsep.join(dict.fromkeys(folders))


@functools.cache
def _drivers() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        return {path.name: path.read_bytes() for path in wheels.drivers_for(wheels.here(), Path(folder))}


def give_drivers(cache: Path) -> None:
    """Who submits to a bucket with this cache packs nothing, unless the driver has changed meanwhile."""
    folder = cache / "drivers"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in _drivers().items():
        (folder / name).write_bytes(content)
