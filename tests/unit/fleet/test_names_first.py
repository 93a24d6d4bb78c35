"""A walk for names alone, stamped afterwards: what was written to meanwhile does not count as sent."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hostler.fleet.snapshot import snapshot
from hostler.fleet.snapshot.tree import COARSE, FILE, stamped


def project(folder: Path) -> Path:
    for name in ("a.py", "sub/b.py", "sub/run.sh"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "sub/run.sh").chmod(0o755)
    (folder / "link").symlink_to("a.py")
    return folder


def test_it_finds_the_same_and_is_stamped_the_same(tmp_path: Path) -> None:
    folder, met = project(tmp_path), list[str]()
    names = snapshot.tree_of(folder, (), lambda node: met.append(node.name), names=True)
    assert met == ["a.py", "link", "sub", "sub/b.py", "sub/run.sh"]
    assert all(node.stamp == (0, 0, 0) and not node.size for node in names.nodes if node.kind == FILE)
    assert stamped(names, time.time() + COARSE + 60) == snapshot.tree_of(folder)


def test_what_may_have_been_written_to_since_has_no_stamp(tmp_path: Path) -> None:
    folder = project(tmp_path)
    begun = os.stat(folder / "a.py").st_ctime
    names = snapshot.tree_of(folder, names=True)
    (folder / "sub/b.py").write_text("meanwhile")
    os.utime(folder / "sub/b.py", (1, 1))
    found = {node.name: node.stamp for node in stamped(names, begun).nodes}
    assert found["sub/b.py"] == (0, 0, 0)
    whole = {node.name: node.stamp for node in stamped(names, begun + COARSE + 60).nodes}
    assert whole["a.py"] != (0, 0, 0)


def test_what_is_gone_meanwhile_is_no_error(tmp_path: Path) -> None:
    folder = project(tmp_path)
    names = snapshot.tree_of(folder, names=True)
    (folder / "a.py").unlink()
    assert "a.py" in {node.name for node in stamped(names, 0.0).nodes}
