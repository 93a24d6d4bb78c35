from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import DamagedError, MachineError, StoreUnreachable, UsageError
from hostler.records import layout
from hostler.records.checkpoint import archive_files
from hostler.records.checkpoint.archive_files import deliver
from hostler.records.checkpoint.tree import hash_file
from hostler.store import Store, open_store
from hostler.store.base import Blob

FILES = {"checkpoint/a.bin": b"aaaa", "checkpoint/deep/b.bin": b"bb", "outputs/c.txt": b"c" * 1000}


class Flaky:
    """A store whose answers stop after so many objects."""

    def __init__(self, store: Store, answers: int) -> None:
        self._store, self.left, self.asked = store, answers, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, key: str, **where: Any) -> Blob:
        if not self.left:
            raise StoreUnreachable("the bucket does not answer")
        self.left -= 1
        self.asked.append(key)
        return self._store.get(key, **where)


@pytest.fixture
def store() -> Store:
    return open_store("memory:")


@pytest.fixture
def record(store: Store, tmp_path: Path) -> dict[str, Any]:
    rows = []
    for n, (name, data) in enumerate(FILES.items()):
        (tmp_path / "one").write_bytes(data)
        sha = hash_file(tmp_path / "one")
        store.put(layout.archived_file("0000000-s-x", n), data)
        rows.append({"name": name, "size": len(data), "sha256": sha, "n": n, "parts": 1})
    return {"run": "0000000-s-x", "k": 2, "files": rows}


def brought(target: Path) -> dict[str, bytes]:
    found = {str(p.relative_to(target)): p.read_bytes() for p in target.rglob("*") if p.is_file()}
    assert json.loads(found.pop("run.json"))["k"] == 2
    return found


def test_interrupted_copy_is_absent_and_resumes_with_arrived_parts(
    store: Store, record: dict[str, Any], tmp_path: Path
) -> None:
    target, flaky = tmp_path / "models" / "best", Flaky(store, 2)
    with pytest.raises(StoreUnreachable):
        deliver(flaky, record, target)  # type: ignore[arg-type]
    assert not target.exists()
    flaky.left, flaky.asked = 9, []
    assert deliver(flaky, record, target) == 2  # type: ignore[arg-type]
    assert flaky.asked == [layout.archived_file(record["run"], 2)]
    assert brought(target) == FILES
    assert list(target.parent.iterdir()) == [target]


def test_parts_from_before_a_retry_do_not_count(store: Store, record: dict[str, Any], tmp_path: Path) -> None:
    target, flaky = tmp_path / "best", Flaky(store, 2)
    with pytest.raises(StoreUnreachable):
        deliver(
            flaky,
            {**record, "k": 1, "files": [{**record["files"][0], "name": "old"}, *record["files"]]},
            target,
        )  # type: ignore[arg-type]
    assert deliver(store, record, target) == 0
    assert brought(target) == FILES


def test_damaged_file_is_reported_and_brought_again_when_whole(
    store: Store, record: dict[str, Any], tmp_path: Path
) -> None:
    key = layout.archived_file(record["run"], 1)
    store.put(key, b"bx")
    with pytest.raises(DamagedError, match=r"b\.bin"):
        deliver(store, record, tmp_path / "best")
    assert not (tmp_path / "best").exists()
    store.put(key, b"bb")
    assert deliver(store, record, tmp_path / "best") == 1
    assert brought(tmp_path / "best") == FILES


def test_an_empty_folder_is_filled_and_another_is_left_alone(
    store: Store, record: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    deliver(store, record, tmp_path / "empty")
    assert brought(tmp_path / "empty") == FILES
    (tmp_path / "mine").write_text("x")
    for there in ("empty", "mine"):
        with pytest.raises(UsageError, match="not empty"):
            deliver(store, record, tmp_path / there)
    with pytest.raises(MachineError, match="mine"):
        deliver(store, record, tmp_path / "mine" / "below")


def test_two_at_once_do_not_mix(store: Store, record: dict[str, Any], tmp_path: Path) -> None:
    staging = archive_files.place(tmp_path / "best")
    staging.mkdir()
    with open(staging / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process is writing"):
            deliver(store, record, tmp_path / "best")
    assert deliver(store, record, tmp_path / "best") == 0


def test_planted_staging_folder_is_refused_and_nothing_written(
    store: Store, record: dict[str, Any], tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "lock").write_text("precious")
    archive_files.place(tmp_path / "run").symlink_to(theirs)
    with pytest.raises(MachineError, match="link"):
        deliver(store, record, tmp_path / "run")
    assert [path.read_text() for path in theirs.iterdir()] == ["precious"]


def test_links_of_an_earlier_call_are_made_again(
    store: Store, record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record["files"].append(
        {"name": "newest", "link": "outputs/c.txt", "size": 13, "sha256": "", "n": 9, "parts": 1}
    )
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(archive_files, "_name", _killed)
        deliver(store, record, tmp_path / "run")
    assert deliver(store, record, tmp_path / "run") == len(FILES)
    assert (tmp_path / "run" / "newest").read_bytes() == FILES["outputs/c.txt"]


def _killed(staging: Path, target: Path) -> None:
    raise KeyboardInterrupt
