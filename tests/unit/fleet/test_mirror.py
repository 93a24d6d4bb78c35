from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.fleet.snapshot import mirror, snapshot

LATER = 3600.0


def put(folder: Path, name: str, text: str = "x") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def tick(path: Path) -> None:
    """Until the file system's clock, which is coarse, has gone on."""
    path.touch()
    first = path.stat().st_mtime_ns
    while path.stat().st_mtime_ns == first:
        path.touch()


def same_size_and_time(folder: Path) -> None:
    before = os.stat(folder / "a.py")
    put(folder, "a.py", "y")
    os.utime(folder / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: list[Callable[[Path], object]] = [
    lambda folder: put(folder, "a.py", "longer"),
    same_size_and_time,
    lambda folder: put(folder, "new.py"),
    lambda folder: put(folder, "sub/new.py"),
    lambda folder: (folder / "sub" / "b.py").unlink(),
    lambda folder: (folder / "a.py").rename(folder / "c.py"),
    lambda folder: (folder / "a.py").chmod(0o755),
    lambda folder: shutil.rmtree(folder / "sub"),
    lambda folder: put(folder, ".gitignore", "*.py"),
    lambda folder: put(folder.parent, ".gitignore", "a.py"),
    lambda folder: put(folder.parent, ".git/info/exclude", "a.py"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen_by_stats_alone(tmp_path: Path, change: Callable[[Path], object]) -> None:
    folder = tmp_path / "project"
    put(tmp_path, ".git/HEAD")
    for name in ("a.py", "sub/b.py", "sub/deep/c.py"):
        put(folder, name)
    seen = mirror.of(snapshot.tree_of(folder), time.time() + LATER)
    assert seen is not None and seen.holds()
    kept = mirror.from_json(json.loads(json.dumps(seen.to_json())))
    assert kept.holds()
    tick(tmp_path / "clock")
    change(folder)
    assert not kept.holds()


def test_what_changed_a_moment_ago_is_not_trusted(tmp_path: Path) -> None:
    put(tmp_path, "a.py")
    assert mirror.of(snapshot.tree_of(tmp_path), time.time()) is None
