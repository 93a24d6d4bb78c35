"""Files first, COMMIT last; what is restored is whole, or said not to be."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import DamagedError, Fenced
from hostler.records import layout
from hostler.records.body import decode, encode
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Checkpoint, Place
from hostler.store import Store
from hostler.store.memory import MemoryStore

RUN = "0000000-s-abc"


def folder(path: Path, **files: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def save(store: Store, tmp: Path, attempt: int, step: int, text: str = "", **facts: Any) -> Checkpoint:
    source = folder(tmp / f"from-{attempt}-{step}", weights=text or f"{attempt}-{step}")
    return checkpoints.save(store, RUN, Place(attempt, step), source, lambda: facts, lambda: None)


def restored(store: Store, tmp: Path, **options: Any) -> tuple[str | None, list[str]]:
    """What the newest good checkpoint holds, and what was said."""
    said: list[str] = []
    target = tmp / "target"
    found = checkpoints.restore_newest(
        store, RUN, target, say=said.append, **{"before": sys.maxsize, **options}
    )
    return (target / "weights").read_text() if found else None, said


def names(store: Store) -> list[str]:
    return [place.name for place in checkpoints.committed(store, RUN)]


def test_checkpoint_restores_modes_links_and_odd_names(store: Store, tmp_path: Path) -> None:
    source = folder(tmp_path / "from", weights="w", **{"a b;\n'ü'": "odd"})
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "run.sh").write_text("#!")
    (source / "deep" / "er" / "run.sh").chmod(0o755)
    (source / "deep" / "latest").symlink_to("../weights")
    checkpoints.save(store, RUN, Place(1, 1), source, dict, lambda: None)
    assert restored(store, tmp_path) == ("w", [])
    target = tmp_path / "target"
    assert (target / "a b;\n'ü'").read_text() == "odd"
    assert os.access(target / "deep" / "er" / "run.sh", os.X_OK)
    assert (target / "deep" / "latest").read_text() == "w"
    assert os.readlink(target / "deep" / "latest") == "../weights"


def test_what_was_in_the_target_before_is_gone(store: Store, tmp_path: Path) -> None:
    save(store, tmp_path, 1, 1)
    folder(tmp_path / "target", stale="x")
    restored(store, tmp_path)
    assert [path.name for path in (tmp_path / "target").iterdir()] == ["weights"]


def test_newest_checkpoint_has_the_highest_attempt_then_highest_step(store: Store, tmp_path: Path) -> None:
    for attempt, step in [(1, 1), (1, 900), (2, 1), (2, 2), (10, 1)]:
        save(store, tmp_path, attempt, step)
    assert names(store) == ["10-1", "2-2", "2-1", "1-900", "1-1"]
    assert restored(store, tmp_path)[0] == "10-1"
    assert restored(store, tmp_path, before=10)[0] == "2-2"
    assert restored(store, tmp_path, after=10) == (None, [])


def test_commit_comes_last_after_the_facts_and_the_guard(memory: MemoryStore, tmp_path: Path) -> None:
    order: list[str] = []
    memory.before = lambda operation, key: order.append(key.rsplit("/", 1)[1])
    source = folder(tmp_path / "from", a="1", b="2")
    checkpoints.save(
        memory, RUN, Place(1, 1), source, lambda: order.append("facts") or {}, lambda: order.append("guard")
    )
    assert order == ["000000", "000001", "facts", "guard", "COMMIT"]


def test_a_guard_that_refuses_leaves_no_commit(store: Store, tmp_path: Path) -> None:
    def fenced() -> None:
        raise Fenced("another's")

    with pytest.raises(Fenced):
        checkpoints.save(store, RUN, Place(1, 1), folder(tmp_path / "from", a="1"), dict, fenced)
    assert names(store) == []
    assert restored(store, tmp_path) == (None, [])


def spoil_bytes(store: Store) -> None:
    store.put(layout.checkpoint_file(RUN, 1, 2, 0), b"9-9")


def spoil_size(store: Store) -> None:
    store.put(layout.checkpoint_file(RUN, 1, 2, 0), b"")


def lose_a_file(store: Store) -> None:
    store.delete(layout.checkpoint_file(RUN, 1, 2, 0))


def spoil_commit(store: Store) -> None:
    store.put(layout.commit(RUN, 1, 2), b"{")


@pytest.mark.parametrize("spoil", [spoil_bytes, spoil_size, lose_a_file, spoil_commit])
def test_damaged_checkpoint_is_reported_and_the_one_before_used(
    store: Store, tmp_path: Path, spoil: Callable[[Store], None]
) -> None:
    save(store, tmp_path, 1, 1)
    save(store, tmp_path, 1, 2)
    spoil(store)
    text, said = restored(store, tmp_path)
    assert text == "1-1"
    assert len(said) == 1
    assert said[0].startswith(("checkpoint 1-2 is damaged", "checkpoint 1-2 is passed over"))


def test_all_checkpoints_damaged_is_an_error_never_a_fresh_start(store: Store, tmp_path: Path) -> None:
    save(store, tmp_path, 1, 2)
    spoil_bytes(store)
    with pytest.raises(DamagedError, match="--fresh"):
        restored(store, tmp_path)


def test_one_that_vanishes_while_it_is_restored_is_not_damaged(memory: MemoryStore, tmp_path: Path) -> None:
    for step in (1, 2):
        save(memory, tmp_path, 1, step)

    def retention(operation: str, key: str) -> None:
        if operation == "get" and key == layout.checkpoint_file(RUN, 1, 2, 0):
            memory.before = None
            save(memory, tmp_path, 2, 1)
            checkpoints.delete(memory, RUN, Place(1, 2))

    memory.before = retention
    assert restored(memory, tmp_path) == ("2-1", [])


def test_a_suspected_one_is_passed_over_if_there_is_another(store: Store, tmp_path: Path) -> None:
    save(store, tmp_path, 1, 1)
    assert restored(store, tmp_path, skip=["1-1"]) == ("1-1", [])
    save(store, tmp_path, 2, 1)
    text, said = restored(store, tmp_path, skip=["2-1"])
    assert text == "1-1"
    assert "2-1 is passed over" in said[0]


@pytest.mark.parametrize(
    "row",
    [
        {"name": "../out", "n": 0},
        {"name": "/tmp/out", "n": 0},
        {"name": "link", "link": "../../out", "n": 0},
        {"name": "link", "link": "/etc/passwd", "n": 0},
    ],
)
def test_a_name_or_link_that_leads_out_is_refused(store: Store, tmp_path: Path, row: dict[str, Any]) -> None:
    save(store, tmp_path, 1, 1)
    key = layout.commit(RUN, 1, 1)
    record = decode(store.get(key).data, key)
    store.put(key, encode({**record, "files": [{**record["files"][0], **row}]}))
    with pytest.raises(DamagedError):
        restored(store, tmp_path)
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


def test_retention_keeps_its_own_newest_and_deletes_earlier_attempts_then(
    store: Store, tmp_path: Path
) -> None:
    save(store, tmp_path, 1, 5)
    save(store, tmp_path, 2, 1)
    assert checkpoints.retain(store, RUN, 2, keep=2) == []
    save(store, tmp_path, 2, 2)
    assert checkpoints.retain(store, RUN, 2, keep=2) == [Place(1, 5)]
    save(store, tmp_path, 2, 3)
    assert checkpoints.retain(store, RUN, 2, keep=2) == [Place(2, 1)]
    assert names(store) == ["2-3", "2-2"]
    assert restored(store, tmp_path) == ("2-3", [])


@pytest.mark.parametrize("keep", [2, 3])
def test_own_cut_off_save_goes_once_a_later_is_whole(store: Store, tmp_path: Path, keep: int) -> None:
    """Between the checkpoints that stay, too; the last of an earlier attempt waits for `keep` good ones."""
    for attempt, step in [(1, 1), (2, 1), (2, 2), (2, 3)]:
        save(store, tmp_path, attempt, step)
    for place in ((1, 1), (2, 2)):
        store.delete(layout.commit(RUN, *place))
    assert Place(2, 2) in checkpoints.retain(store, RUN, 2, keep=keep)
    kept = {layout.split_checkpoint(entry.key) for entry in store.list(layout.checkpoints(RUN))}
    assert kept == {(2, 1), (2, 3)} | ({(1, 1)} if keep == 3 else set())
    assert list(store.list(layout.checkpoint(RUN, 2, 2))) == []


@pytest.mark.parametrize("saved", [True, False])
def test_next_attempt_ends_a_deletion_that_broke_off(store: Store, tmp_path: Path, saved: bool) -> None:
    """COMMIT goes first: whoever deleted may have lost the store, and then the run, before the files went."""
    for attempt, step in [(1, 1), (1, 2), (1, 3), (1, 4), *([(2, 1)] if saved else [])]:
        save(store, tmp_path, attempt, step)
    for place in ((1, 2), (1, 4)):
        store.delete(layout.commit(RUN, *place))
    assert checkpoints.retain(store, RUN, 2, keep=3) == [Place(1, 2)]
    kept = {layout.split_checkpoint(entry.key) for entry in store.list(layout.checkpoints(RUN))}
    assert kept == {(1, 1), (1, 3), (1, 4)} | ({(2, 1)} if saved else set())


def test_a_zombie_never_deletes_what_a_later_attempt_saved(store: Store, tmp_path: Path) -> None:
    save(store, tmp_path, 5, 1)
    for step in (1, 2, 3):
        save(store, tmp_path, 1, step)
    checkpoints.retain(store, RUN, 1, keep=1)
    assert names(store) == ["5-1", "1-3"]


def test_one_marked_kept_stays_for_good(store: Store, tmp_path: Path) -> None:
    save(store, tmp_path, 1, 1, kept=True)
    for step in (1, 2, 3):
        save(store, tmp_path, 2, step, kept=step == 1)
    checkpoints.retain(store, RUN, 2, keep=1)
    assert names(store) == ["2-3", "2-1", "1-1"]


def test_files_of_a_cut_off_save_go_with_retention(store: Store, tmp_path: Path) -> None:
    for attempt, step in [(1, 1), (2, 1)]:
        store.put(layout.checkpoint_file(RUN, attempt, step, 0), b"half")
    save(store, tmp_path, 2, 2)
    checkpoints.retain(store, RUN, 2, keep=1)
    left = {layout.split_checkpoint(entry.key) for entry in store.list(layout.checkpoints(RUN))}
    assert left == {(2, 2)}


def test_a_deletion_takes_commit_first(memory: MemoryStore, tmp_path: Path) -> None:
    save(memory, tmp_path, 1, 1)
    order: list[str] = []
    memory.before = lambda operation, key: order.append(f"{operation} {key.rsplit('/', 1)[1]}")
    checkpoints.delete(memory, RUN, Place(1, 1))
    assert order == ["delete COMMIT", "list ", "delete 000000"]


def test_an_empty_folder_can_be_saved_and_restored(store: Store, tmp_path: Path) -> None:
    checkpoints.save(
        store, RUN, Place(1, 1), folder(tmp_path / "none"), lambda: {"finished": True}, lambda: None
    )
    found = checkpoints.restore_newest(store, RUN, tmp_path / "target", before=9)
    assert found is not None
    assert found.finished
    assert [*(tmp_path / "target").iterdir()] == []
