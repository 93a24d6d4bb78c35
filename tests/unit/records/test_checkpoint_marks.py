"""A checkpoint that a person marked stays, whoever retains or collects at that moment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from hostler.records import garbage, layout
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Store
from hostler.store.memory import MemoryStore
from interleaving import interleaved

RUN = "0000000-s-abc"
OLD = Place(1, 1)


def save(store: Store, tmp: Path, number: int, run: str = RUN) -> None:
    folder = tmp / f"from-{number}"
    folder.mkdir(exist_ok=True)
    for name in ("a", "b"):
        (folder / name).write_text(f"{name} of {number}")
    checkpoints.save(store, run, Place(1, number), folder, dict, lambda: None)


def is_whole(store: Store, tmp: Path, run: str = RUN, place: Place = OLD) -> bool:
    if place not in checkpoints.committed(store, run):
        return False
    checkpoints.restore(store, checkpoints.read(store, run, place), tmp / "restored")
    return (tmp / "restored" / "b").read_text() == f"b of {place.step}"


def test_marked_checkpoint_outlives_retention_until_unmarked(store: Store, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        save(store, tmp_path, number)
    assert checkpoints.mark(store, RUN, OLD)
    assert checkpoints.retain(store, RUN, 1, keep=1) == [Place(1, 2)]
    assert is_whole(store, tmp_path)
    checkpoints.unmark(store, RUN, OLD)
    assert checkpoints.retain(store, RUN, 1, keep=1) == [OLD]
    assert [layout.split_checkpoint(entry.key) for entry in store.list(layout.checkpoints(RUN))] == [
        (1, 3)
    ] * 3


def test_mark_leaves_commit_as_it_was(store: Store, tmp_path: Path) -> None:
    save(store, tmp_path, 1)
    before = store.get(layout.commit(RUN, 1, 1)).data
    assert checkpoints.mark(store, RUN, OLD)
    assert store.get(layout.commit(RUN, 1, 1)).data == before


def race(schedule: Sequence[int], kill: tuple[int, ...], tmp: Path) -> tuple[MemoryStore, bool | None]:
    """A person marks while a worker retains, request by request in this order: the person's answer."""
    store, answers = MemoryStore(), list[bool]()
    for number in (1, 2):
        save(store, tmp, number)

    def mark() -> None:
        answers.append(checkpoints.mark(store, RUN, OLD, lambda seconds: None))

    interleaved(store, [mark, lambda: checkpoints.retain(store, RUN, 1, keep=1)], schedule, kill)
    return store, answers[0] if answers else None


@pytest.mark.parametrize("kill", [(), (0,), (1,)], ids=["both live", "person dies", "worker dies"])
def test_mark_holds_in_every_order_with_retention(kill: tuple[int, ...], tmp_path: Path) -> None:
    answers = set()
    for schedule in product((0, 1), repeat=9):
        store, answer = race(schedule, kill, tmp_path)
        if kill:
            checkpoints.retain(store, RUN, 1, keep=1)  # of the next save
        answers.add(answer)
        signs = checkpoints.marked(entry.key for entry in store.list(layout.checkpoints(RUN)))
        if answer:
            assert is_whole(store, tmp_path) and signs == {OLD}, schedule
        elif answer is False:
            assert not signs, schedule
        assert Place(1, 2) in checkpoints.committed(store, RUN)
    assert answers >= {True, False}


def test_mark_of_a_deleted_checkpoint_is_refused(store: Store, tmp_path: Path) -> None:
    save(store, tmp_path, 1)
    checkpoints.delete(store, RUN, OLD)
    assert not checkpoints.mark(store, RUN, OLD)
    assert not list(store.list(layout.checkpoints(RUN)))


def test_damaged_mark_keeps_nothing_that_is_deleted(store: Store, tmp_path: Path) -> None:
    save(store, tmp_path, 1)
    store.put(layout.checkpoint_mark(RUN, 1, 1), b"no record")
    assert checkpoints.delete(store, RUN, OLD)
    assert not list(store.list(layout.checkpoints(RUN)))


def ended(store: Store, tmp: Path) -> str:
    """A done run with two checkpoints, beside one that is better."""
    job = Job(name="s", command=("x",), runs=({"n": 0}, {"n": 1}), metric="a", goal="max")
    assert sweeps.submit(store, job)
    for index in (0, 1):
        key = RunKey(job.name, job.run_id(index))
        held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("w", facts={"host": "h"}))
        assert held is not None
        for number in (1, 2):
            save(store, tmp, number, key.run)
        held.end("done", attempts=1, metrics={"a": {"last": index, "min": 0, "max": index, "step": 1}})
    return job.run_id(0)


def find(store: Store) -> garbage.Waste:
    return garbage.find(store, 1e12, grace=1.0)


def test_gc_passes_a_marked_checkpoint_over(store: Store, tmp_path: Path) -> None:
    run = ended(store, tmp_path)
    assert checkpoints.mark(store, run, OLD)
    [one] = find(store).saved
    assert {layout.split_checkpoint(key) for key in one.keys} == {(1, 2)}
    garbage.remove(store, find(store), lambda: find(store))
    assert checkpoints.committed(store, run) == [OLD] and is_whole(store, tmp_path, run)
    found = find(store)
    assert not found.saved and found.kept[garbage.MARKED] == 1


def test_gc_spares_a_checkpoint_marked_while_it_deletes(memory: MemoryStore, tmp_path: Path) -> None:
    run = ended(memory, tmp_path)
    shown, sign = find(memory), layout.checkpoint_mark(run, 1, 1)
    data = memory.get(layout.commit(run, 1, 1)).data

    def mark_now(operation: str, key: str) -> None:
        if operation == "delete":
            memory.before = None
            memory.put(sign, data)

    def look() -> garbage.Waste:
        found = find(memory)
        memory.before = mark_now
        return found

    garbage.remove(memory, shown, look)
    assert checkpoints.committed(memory, run) == [OLD] and is_whole(memory, tmp_path, run)
