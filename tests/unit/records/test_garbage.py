from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import garbage, layout
from hostler.records.body import encode
from hostler.records.checkpoint import archive, checkpoints
from hostler.records.checkpoint.archive import ArchiveTerms
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.garbage import OVER
from hostler.records.launch import launches
from hostler.records.launch.launches import Generation
from hostler.records.run import control
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec.job import DataItem, Job, Source
from hostler.store import Store, open_store

CODE, OTHER, DATA, OLD = "a" * 64, "b" * 64, "c" * 64, "d" * 64
LATER = 1e12
DAY = 86400.0


@pytest.fixture
def store() -> Store:
    return open_store("memory:")


def submit(store: Store, name: str, count: int, **given: Any) -> Job:
    job = Job(name=name, command=("x",), runs=tuple({"lr": n} for n in range(count)), metric="a", **given)
    assert sweeps.submit(store, job)
    return job


def run(store: Store, job: Job, index: int, folder: Path, state: str | None, value: float = 0.0) -> str:
    key = RunKey(job.name, job.run_id(index))
    held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("s", facts={"host": "h"}))
    assert held is not None
    (folder / "w").mkdir(exist_ok=True)
    (folder / "w" / "weights.bin").write_bytes(bytes(1000))
    checkpoints.save(store, key.run, Place(held.number, 1), folder / "w", dict, lambda: None)
    if state:
        held.end(state, attempts=1, metrics={"a": {"last": value, "min": value, "max": value, "step": 1}})
    return key.run


def find(store: Store, now: float, states: Collection[str] = OVER) -> garbage.Waste:
    return garbage.find(store, now, states, grace=DAY)


def remove(store: Store, found: garbage.Waste) -> list[str]:
    return garbage.remove(store, found, lambda: find(store, LATER, {*OVER, "failed"}))


def has_checkpoint(store: Store, run: str) -> bool:
    return bool(checkpoints.committed(store, run))


def test_only_checkpoints_of_done_runs_except_the_best_go(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 7)
    states = ["done", "done", "pruned", "failed", "stopped", None]
    runs = [run(store, job, n, tmp_path, state, float(n == 1)) for n, state in enumerate(states)]
    found = find(store, LATER)
    assert {one.row.id for one in found.saved} == {runs[0], runs[2]}
    assert found.size >= 2000 and found.kept == {
        "best of its sweep": 1,
        "failed": 1,
        "stopped": 1,
        "not over": 1,
    }
    remove(store, found)
    assert [has_checkpoint(store, one) for one in runs] == [False, True, False, True, True, True]
    assert {one.row.id for one in find(store, LATER, {*OVER, "failed"}).saved} == {runs[3]}


def test_what_is_in_the_archive_and_what_others_take_stays(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 3)
    runs = [run(store, job, n, tmp_path, "done", float(n)) for n in range(3)]
    terms = ArchiveTerms(1, "a", "min")
    archive.agree(store, terms)
    (best, *_) = archive.ranked(archive.candidates(store, terms), terms)
    archive.enter(store, best, terms)
    submit(store, "next", 1, init={"run": runs[1]})
    assert find(store, LATER).saved == ()
    assert find(store, LATER).kept == {
        "in the archive": 1,
        "taken by others": 1,
        "best of its sweep": 1,
    }


def test_a_whole_sweep_stays_while_another_waits_for_its_best(store: Store, tmp_path: Path) -> None:
    job = submit(store, "first", 3)
    for n in range(3):
        run(store, job, n, tmp_path, "done", float(n))
    follower = submit(store, "second", 1, init={"best-of": "first"})
    assert find(store, LATER).saved == ()
    run(store, follower, 0, tmp_path, "done")
    assert len(find(store, LATER).saved) == 2


def test_a_run_that_was_opened_since_keeps_its_checkpoints(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 2)
    one = run(store, job, 0, tmp_path, "failed")
    found = find(store, LATER, {"failed"})
    control.retry(store, RunKey("s", one))
    assert remove(store, found) == ["s/0"] and has_checkpoint(store, one)


def test_code_and_data_that_something_names_never_go(store: Store, tmp_path: Path) -> None:
    data = (DataItem("train", blob=DATA),)
    job = submit(store, "s", 2, source=Source(snapshot=CODE), data=data)
    run(store, job, 0, tmp_path, "failed")
    control.retry(store, RunKey("s", job.run_id(0)), source={"snapshot": OTHER})
    for key in (layout.code(CODE), layout.code_record(CODE), layout.code(OTHER), layout.data(DATA)):
        store.put(key, b"x")
    for key in (layout.code(OLD), layout.code_record(OLD)):
        store.put(key, b"old")
    (blob,) = find(store, LATER).blobs
    assert set(blob.keys) == {layout.code(OLD), layout.code_record(OLD)}
    modified = next(iter(store.list(layout.code(OLD)))).modified
    assert find(store, modified + DAY / 2).blobs == ()  # a submission may be on its way
    remove(store, find(store, LATER))
    assert {e.key for e in store.list("code/")} == {
        layout.code(CODE),
        layout.code_record(CODE),
        layout.code(OTHER),
    }


def test_leftovers_of_a_model_go_later_unless_entered_meanwhile(store: Store, tmp_path: Path) -> None:
    terms = ArchiveTerms(2, "a", "max")
    job = submit(store, "s", 2)
    for index in range(2):
        run(store, job, index, tmp_path, "done", float(index))
    for one in archive.candidates(store, terms):
        archive.enter(store, one, terms)
    half, other = (entry.run for entry in archive.entries(store, terms))
    store.delete(layout.archived_commit(half))
    young = max(entry.modified for entry in store.list(layout.archived(half)))
    assert not find(store, young + 1).blobs
    (blob,) = find(store, LATER).blobs
    assert set(blob.keys) == {entry.key for entry in store.list(layout.archived(half))}
    found = find(store, LATER)
    archive.enter(store, next(one for one in archive.candidates(store, terms) if one.run == half), terms)
    remove(store, found)
    assert {entry.run for entry in archive.entries(store, terms)} == {half, other}
    store.delete(layout.archived_commit(half))
    remove(store, find(store, LATER))
    assert not list(store.list(layout.archived(half))) and list(store.list(layout.archived(other)))


def test_store_that_a_newer_hostler_writes_to_is_not_tidied(store: Store) -> None:
    submit(store, "s", 1)
    store.put(layout.code(OLD), b"old")
    store.put(layout.archived_commit("0000000-s-abc"), b"{")
    store.put(layout.log_entry("s", sweeps.load(store, "s").run_id(0), 1), b'{"kind":"claim","session":"x"}')
    assert len(find(store, LATER).blobs) == 1
    store.put(layout.log_entry("s", sweeps.load(store, "s").run_id(0), 1), b'{"kind":"claim","format":9}')
    with pytest.raises(NewerFormatError):
        find(store, LATER)


def test_checkpoints_younger_than_the_grace_stay(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 2)
    ids = [run(store, job, n, tmp_path, "done", float(n)) for n in range(2)]
    newest = max(entry.modified for entry in store.list(layout.checkpoints(ids[0])))
    assert find(store, newest + DAY / 2).kept == {"best of its sweep": 1, garbage.YOUNG: 1}
    assert [one.row.id for one in find(store, newest + DAY + 1).saved] == [ids[0]]


def test_removal_decides_again_while_it_lasts(store: Store, tmp_path: Path) -> None:
    """A run named as an input in the middle of a long removal is left; those before it are gone."""
    job = submit(store, "s", 4)
    ids = [run(store, job, n, tmp_path, "done", float(n)) for n in range(4)]
    shown, ticks = find(store, LATER), iter(range(0, 1000, 4))
    looks = []

    def look() -> garbage.Waste:
        looks.append(1)
        if len(looks) == 2:
            submit(store, "next", 1, init={"run": ids[2]})
        return find(store, LATER)

    assert garbage.remove(store, shown, look, lambda: float(next(ticks))) == ["s/2"]
    assert [has_checkpoint(store, one) for one in ids] == [False, False, True, True]
    assert len(looks) > 1


def test_blob_written_again_after_the_look_stays(store: Store) -> None:
    store.put(layout.code(OLD), b"old")
    shown = find(store, LATER)
    looked = find(store, LATER)
    store.put(layout.code(OLD), b"old")
    assert garbage.remove(store, shown, lambda: looked) == [f"code/{OLD}"]
    assert store.get(layout.code(OLD)).data == b"old"


def test_hostler_and_drivers_stay_while_machines_may_begin(store: Store) -> None:
    """A replaced VM fetches what its launch's template names, which is in no record."""
    for key in (layout.library(OLD), layout.wheel(OTHER)):
        store.put(key, b"old")
    launches.begin(store, Generation("burst", 1, "token", workers=1, billed=True))
    assert find(store, LATER).blobs == ()
    launches.close(store, "burst", 1)
    assert len(find(store, LATER).blobs) == 2


@pytest.mark.parametrize(
    "inputs",
    [None, [], {"a": 1}, {"a": {"run": 7}}, {"a": {"run": "../x"}}, {"a": {"run": "x", "file": "f"}}],
)
def test_damaged_record_of_inputs_is_named_and_nothing_goes(
    store: Store, tmp_path: Path, inputs: Any
) -> None:
    job = submit(store, "s", 3)
    runs = [run(store, job, n, tmp_path, state) for n, state in enumerate(["done", "done", None])]
    store.put(layout.inputs(runs[2]), encode({"inputs": inputs}))
    with pytest.raises(DamagedError, match=layout.inputs(runs[2])):
        find(store, LATER)
    assert all(has_checkpoint(store, one) for one in runs)


def test_damage_that_is_left_out_keeps_its_own(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 4)
    runs = [run(store, job, n, tmp_path, "done", float(n)) for n in range(4)]
    end, spec = layout.log_entry("s", runs[0], 2), layout.spec("t", 1)
    store.put(f"code/{OLD}", b"named by t, for all that is known")
    assert [blob.prefix for blob in find(store, LATER).blobs] == [f"code/{OLD}"]
    submit(store, "t", 1)
    store.put(spec, b"[")
    said: list[str] = []
    found = garbage.find(store, LATER, grace=DAY, say=said.append)
    assert [one.row.id for one in found.saved] == runs[:3] and not found.blobs
    store.put(end, b"[")
    found = garbage.find(store, LATER, grace=DAY, say=said.append)
    assert [one.row.id for one in found.saved] == runs[1:3] and not found.blobs
    assert all(any(key in line for line in said) for key in (spec, end))
    with pytest.raises(DamagedError):
        find(store, LATER)
