from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.errors import NewerFormatError
from hostler.records import archive, checkpoints, control, layout, sweeps, waste
from hostler.records.archive import Terms
from hostler.records.attempt import claim
from hostler.records.checkpoints import Place
from hostler.records.entries import Claim
from hostler.records.log import RunKey, RunLog
from hostler.records.waste import LAIN, OVER
from hostler.spec.job import DataItem, Job, Source
from hostler.store import Store, open_store

CODE, OTHER, DATA, OLD = "a" * 64, "b" * 64, "c" * 64, "d" * 64
LATER = 1e12


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


def has_checkpoint(store: Store, run: str) -> bool:
    return bool(checkpoints.committed(store, run))


def test_checkpoints_go_of_what_is_done_and_not_the_best_and_nothing_else(
    store: Store, tmp_path: Path
) -> None:
    job = submit(store, "s", 7)
    states = ["done", "done", "pruned", "failed", "stopped", None]
    runs = [run(store, job, n, tmp_path, state, float(n == 1)) for n, state in enumerate(states)]
    found = waste.find(store, LATER)
    assert {one.row.id for one in found.saved} == {runs[0], runs[2]}
    assert found.size >= 2000 and found.kept == {
        "best of its sweep": 1,
        "failed": 1,
        "stopped": 1,
        "not over": 1,
    }
    waste.remove(store, found)
    assert [has_checkpoint(store, one) for one in runs] == [False, True, False, True, True, True]
    assert {one.row.id for one in waste.find(store, LATER, {*OVER, "failed"}).saved} == {runs[3]}


def test_what_is_in_the_archive_and_what_others_take_stays(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 3)
    runs = [run(store, job, n, tmp_path, "done", float(n)) for n in range(3)]
    terms = Terms(1, "a", "min")
    archive.agree(store, terms)
    (best, *_) = archive.ranked(archive.candidates(store, terms), terms)
    archive.enter(store, best, terms)
    submit(store, "next", 1, init={"run": runs[1]})
    assert waste.find(store, LATER).saved == ()
    assert waste.find(store, LATER).kept == {
        "in the archive": 1,
        "taken by others": 1,
        "best of its sweep": 1,
    }


def test_a_whole_sweep_stays_while_another_waits_for_its_best(store: Store, tmp_path: Path) -> None:
    job = submit(store, "first", 3)
    for n in range(3):
        run(store, job, n, tmp_path, "done", float(n))
    follower = submit(store, "second", 1, init={"best-of": "first"})
    assert waste.find(store, LATER).saved == ()
    run(store, follower, 0, tmp_path, "done")
    assert len(waste.find(store, LATER).saved) == 2


def test_a_run_that_was_opened_since_keeps_its_checkpoints(store: Store, tmp_path: Path) -> None:
    job = submit(store, "s", 2)
    one = run(store, job, 0, tmp_path, "failed")
    found = waste.find(store, LATER, {"failed"})
    control.retry(store, RunKey("s", one))
    assert waste.remove(store, found) == [one] and has_checkpoint(store, one)


def test_code_and_data_that_something_names_never_go(store: Store, tmp_path: Path) -> None:
    data = (DataItem("train", blob=DATA),)
    job = submit(store, "s", 2, source=Source(snapshot=CODE), data=data)
    run(store, job, 0, tmp_path, "failed")
    control.retry(store, RunKey("s", job.run_id(0)), source={"snapshot": OTHER})
    for key in (layout.code(CODE), layout.code_record(CODE), layout.code(OTHER), layout.data(DATA)):
        store.put(key, b"x")
    for key in (layout.code(OLD), layout.code_record(OLD)):
        store.put(key, b"old")
    (blob,) = waste.find(store, LATER).blobs
    assert set(blob.keys) == {layout.code(OLD), layout.code_record(OLD)}
    modified = next(iter(store.list(layout.code(OLD)))).modified
    assert waste.find(store, modified + LAIN / 2).blobs == ()  # a submission may be on its way
    waste.remove(store, waste.find(store, LATER))
    assert {e.key for e in store.list("code/")} == {
        layout.code(CODE),
        layout.code_record(CODE),
        layout.code(OTHER),
    }


def test_what_is_left_of_a_model_goes_once_it_has_lain_unless_it_is_entered_meanwhile(
    store: Store, tmp_path: Path
) -> None:
    terms = Terms(2, "a", "max")
    job = submit(store, "s", 2)
    for index in range(2):
        run(store, job, index, tmp_path, "done", float(index))
    for one in archive.candidates(store, terms):
        archive.enter(store, one, terms)
    half, other = (entry.run for entry in archive.entries(store, terms))
    store.delete(layout.archived_commit(half))
    young = max(entry.modified for entry in store.list(layout.archived(half)))
    assert not waste.find(store, young + 1).blobs
    (blob,) = waste.find(store, LATER).blobs
    assert set(blob.keys) == {entry.key for entry in store.list(layout.archived(half))}
    found = waste.find(store, LATER)
    archive.enter(store, next(one for one in archive.candidates(store, terms) if one.run == half), terms)
    waste.remove(store, found)
    assert {entry.run for entry in archive.entries(store, terms)} == {half, other}
    store.delete(layout.archived_commit(half))
    waste.remove(store, waste.find(store, LATER))
    assert not list(store.list(layout.archived(half))) and list(store.list(layout.archived(other)))


def test_a_store_that_a_newer_hostler_writes_to_is_not_tidied(store: Store) -> None:
    submit(store, "s", 1)
    store.put(layout.code(OLD), b"old")
    store.put(layout.archived_commit("0000000-s-abc"), b"{")
    store.put(layout.log_entry("s", sweeps.load(store, "s").run_id(0), 1), b'{"kind":"claim","session":"x"}')
    assert len(waste.find(store, LATER).blobs) == 1
    store.put(layout.log_entry("s", sweeps.load(store, "s").run_id(0), 1), b'{"kind":"claim","format":9}')
    with pytest.raises(NewerFormatError):
        waste.find(store, LATER)
