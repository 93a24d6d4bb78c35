"""What a machine that has run hostler before knows of its Python: asked once per test process."""

from __future__ import annotations

import functools
import hashlib
import sys
import tempfile
from pathlib import Path

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
