"""What was sent is what arrives: the submitter's side and the machine's, joined by a store."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from plain_store import PlainStore

from hostler.fleet.snapshot import snapshot
from hostler.fleet.snapshot.data import data_items
from hostler.settings import Sizes
from hostler.spec.job import Job, Source
from hostler.spec.project import DataEntry
from hostler.worker.prepare.prepare import prepare


def seen(root: Path) -> dict[bytes, object]:
    """Every name under root with its content, target or kind, and its x bit."""
    found: dict[bytes, object] = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                what: object = os.readlink(path)
            elif stat.S_ISDIR(mode):
                what = "folder"
            else:
                what = (Path(os.fsdecode(path)).read_bytes(), bool(mode & 0o100))
            found[os.path.relpath(path, os.fsencode(root))] = what
    return found


def test_code_and_data_arrive_as_they_were(tmp_path: Path) -> None:
    project = tmp_path / "a 'b\n; echo x"
    odd = [b"new\nline", b'quo"te', b"\xff\xfe", b"deep/er/train.py", b"-rf", b"x" * 180 + b"/" + b"y" * 200]
    for name in odd:
        path = project / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name)
    (project / "deep" / "er" / "train.py").chmod(0o755)
    (project / "deep" / "link").symlink_to("../-rf")
    (project / "dangling").symlink_to("not/there")
    (project / "empty").mkdir()
    store, cache = PlainStore(tmp_path / "store"), tmp_path / "cache"

    shot = snapshot.take(project, Sizes(), cache=cache)
    snapshot.upload(store, shot)
    items = data_items(
        [DataEntry("all", path="deep/er"), DataEntry("one", path="deep/er/train.py")], project, store, cache
    )
    job = Job(name="demo", command=("true",), source=Source(snapshot=shot.sha), data=items)
    done = prepare(job, store, tmp_path / "machine", tmp_path / "run", print)

    assert seen(done.cwd) == seen(project)
    assert (done.data / "one").read_bytes() == b"deep/er/train.py"
    assert seen(done.data / "all") == seen(project / "deep" / "er")


def test_absolute_link_within_the_data_works_on_the_machine(tmp_path: Path) -> None:
    project = tmp_path / "p"
    (project / "data").mkdir(parents=True)
    (project / "data" / "x").write_text("1")
    store, cache = PlainStore(tmp_path / "store"), tmp_path / "cache"
    (project / "data" / "same").symlink_to(project / "data" / "x")
    items = data_items([DataEntry("d", path="data")], project, store, cache)
    done = prepare(
        Job(name="demo", command=("true",), data=items), store, tmp_path / "m", tmp_path / "r", print
    )
    assert (done.data / "d" / "same").read_text() == "1"
