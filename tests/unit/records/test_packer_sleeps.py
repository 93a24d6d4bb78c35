"""Packers that sleep between any two of their steps, while others retry, pack, delete and submit anew; and
sweeps whose packs or seals are damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import DamagedError, StoreError
from hostler.records import layout, rows, trash
from hostler.records.checkpoint import archive
from hostler.records.checkpoint.archive import ArchiveTerms
from hostler.records.launch import breakdown
from hostler.records.packs import packer
from hostler.records.packs.packed_store import PackedStore
from hostler.records.run import control, log
from hostler.records.run.log import RunKey
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import NotFound
from hostler.store.memory import MemoryStore
from packed_world import fresh, no_wait, seen, submit, take

DAY = 86400.0


@pytest.fixture
def now() -> list[float]:
    return [10 * DAY]


@pytest.fixture
def store(now: list[float]) -> PackedStore:
    return PackedStore(MemoryStore(clock=lambda: now[0]))


def over(store: PackedStore, count: int = 3, name: str = "s") -> Job:
    job = submit(store, count, name)
    for index in range(count):
        end(store, job, index)
    return job


def end(store: PackedStore, job: Job, index: int) -> None:
    held = take(store, job, index)
    MetricWriter(store, held.key.run, held.number).write([Point(1, 1.0, {"a": 1.0})])
    held.end("done", attempts=1, metrics={})


def again(store: PackedStore, job: Job, index: int) -> None:
    control.retry(store, RunKey(job.name, job.run_id(index)), fresh=True)
    end(store, job, index)


def submit_anew(store: PackedStore, job: Job) -> None:
    """Delete the sweep and submit it again under its name: the first of its runs is taken."""
    for index in range(job.count):
        trash.delete_run(store, job.run_id(index))
    trash.delete_sweep(store, job.name)
    assert sweeps.submit(store, job)
    take(store, job, 0)


def sleep_before(store: PackedStore, operation: str, part: str, meanwhile: Callable[[], None]) -> None:
    """Do this before the first request of a kind."""
    assert isinstance(store.inner, MemoryStore)

    def look(sent: str, key: str) -> None:
        if sent == operation and part in key:
            store.inner.before = None  # type: ignore[attr-defined]
            meanwhile()

    store.inner.before = look


def names(store: PackedStore, prefix: str) -> list[str]:
    return [entry.key for entry in store.inner.list(prefix)]


def test_packs_of_a_later_seal_survive_a_finish_that_slept(store: PackedStore, now: list[float]) -> None:
    job = over(store)
    packer.copy(store, job)

    def days() -> None:
        again(fresh(store), job, 1)
        packer.pack(fresh(store), job, no_wait)
        now[0] += 2 * DAY

    sleep_before(store, "list", "/packs/", days)
    packer.finish(store, "s", no_wait)
    assert log.heads(fresh(store), "s")[job.run_id(1)] == 5
    assert seen(fresh(store), job)[job.run_id(1)]["points"]


def test_packs_about_to_be_sealed_are_kept_for_days(store: PackedStore, now: list[float]) -> None:
    job = over(store)
    packer.pack(store, job, no_wait)
    again(store, job, 1)
    before = seen(store, job)

    def days() -> None:
        now[0] += 2 * DAY
        packer.finish(fresh(store), "s", no_wait)

    sleep_before(store, "put", "/sealed/", days)
    assert packer.pack(store, job, no_wait).runs == 1
    assert seen(fresh(store), job) == before


def test_packs_of_a_killed_packer_go_once_another_has_sealed(store: PackedStore, now: list[float]) -> None:
    job = over(store)
    store.inner.put(layout.pack("s", "dead-000001"), b"HSTP")
    now[0] += 1.0
    packer.pack(store, job, no_wait)
    assert layout.pack("s", "dead-000001") in names(store, layout.packs("s"))
    now[0] += 2 * DAY
    packer.finish(store, "s", no_wait)
    assert len(names(store, layout.packs("s"))) == 1


def test_sweep_submitted_anew_in_the_pause_keeps_its_log(store: PackedStore) -> None:
    job = over(store)
    packer.copy(store, job)
    packer.finish(store, "s", lambda seconds: submit_anew(fresh(store), job))
    assert log.heads(fresh(store), "s") == {job.run_id(0): 1}


@pytest.mark.parametrize("step", [("get", "/log/"), ("put", "/packs/"), ("put", "/sealed/")], ids="-".join)
def test_sweep_submitted_anew_has_no_runs_of_the_old(store: PackedStore, step: tuple[str, str]) -> None:
    job = over(store)
    sleep_before(store, *step, lambda: submit_anew(fresh(store), job))
    packer.copy(store, job)
    assert log.heads(fresh(store), "s") == {job.run_id(0): 1}


def test_sweep_submitted_anew_is_packed_past_an_old_seal(store: PackedStore) -> None:
    job = over(store)
    sleep_before(store, "put", "/sealed/", lambda: submit_anew(fresh(store), job))
    packer.copy(store, job)
    other = fresh(store)
    held = control.state_of(other, RunKey("s", job.run_id(0)))
    assert held.attempt == 1
    take(other, job, 0).end("failed", attempts=2, metrics={})
    for index in (1, 2):
        end(other, job, index)
    before = seen(other, job)
    assert packer.pack(other, job, no_wait).runs == 3
    assert seen(fresh(store), job) == before
    assert names(store, layout.seals("s")) == [layout.seal("s", 1), layout.seal("s", 2)]


def test_old_reader_sees_the_packs_of_a_sweep_submitted_anew(store: PackedStore) -> None:
    clock = [0.0]
    reader = PackedStore(store.inner, clock=lambda: clock[0])
    job = over(store)
    packer.pack(store, job, no_wait)
    old = seen(reader, job)
    other = fresh(store)
    submit_anew(other, job)
    take(other, job, 0).end("failed", attempts=2, metrics={})
    for index in (1, 2):
        end(other, job, index)
    packer.pack(other, job, no_wait)
    clock[0] += 60.0
    assert seen(reader, job) == seen(fresh(store), job) != old


def test_logs_copied_from_another_sweep_take_nothing_from_it(store: PackedStore) -> None:
    job, other = over(store), submit(store, 3, "t")
    for key in names(store, layout.logs_of("s")):
        store.inner.put(key.replace("/s/", "/t/"), store.inner.get(key).data)
    before, copied = seen(store, job), log.heads(store, "t")
    found = packer.pack(store, other, no_wait)
    assert (found.runs, found.left) == (0, 3)
    assert seen(fresh(store), job) == before
    assert log.heads(fresh(store), "t") == copied


def test_damaged_seal_hides_its_own_sweep_alone(store: PackedStore) -> None:
    packer.pack(store, over(store), no_wait)
    over(store, name="t")
    store.inner.put(layout.seal("s", 1), b"HSTL\1\0\0\0xxx")
    said: list[str] = []
    assert {row.sweep for row in rows.rows(fresh(store), say=said.append)} == {"t"}
    works = breakdown.works_of(fresh(store), ["s", "t"], 0.0, said.append)
    assert len(works) == 3
    terms = ArchiveTerms(metric="a", goal="max", top=3)
    assert {run.sweep for run in archive.candidates(fresh(store), terms, said.append)} <= {"t"}
    assert len(said) == 3
    assert all(line.startswith("s is left out: sweeps/s/sealed/000001 is damaged") for line in said)


def test_damaged_pack_does_not_keep_others_from_being_deleted(store: PackedStore) -> None:
    job = over(store)
    packer.pack(store, job, no_wait)
    [pack] = names(store, layout.packs("s"))
    seal = store.look("s")
    assert seal is not None
    row = seal.rows[job.run_id(1)]
    data = bytearray(store.inner.get(pack).data)
    data[row.start + row.size // 2] ^= 255
    store.inner.put(pack, bytes(data))
    gone = {job.run_id(0), job.run_id(1)}
    trash.delete_packed(fresh(store), "s", gone)
    assert all(trash.emptied(fresh(store), run) for run in gone)
    assert not trash.emptied(fresh(store), job.run_id(2))
    assert names(store, layout.packs("s")) != [pack]
    with pytest.raises(DamagedError):
        fresh(store).get(layout.log_entry("s", job.run_id(1), 1))


def test_full_disk_while_packing_gets_its_room_back(
    store: PackedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer, "BYTES", 1)
    job, puts = over(store), list[str]()
    before = seen(store, job)

    def full(operation: str, key: str) -> None:
        if operation == "put" and "/packs/" in key:
            puts.append(key)
            if len(puts) == 3:
                raise StoreError("the disk is full")

    assert isinstance(store.inner, MemoryStore)
    store.inner.before = full
    with pytest.raises(StoreError, match="the disk is full"):
        packer.pack(store, job, no_wait)
    store.inner.before = None
    assert len(puts) == 3 and names(store, layout.packs("s")) == []
    assert seen(fresh(store), job) == before


def test_download_of_a_packed_object_is_judged_again(store: PackedStore, tmp_path: Path) -> None:
    clock = [0.0]
    slept = PackedStore(store.inner, clock=lambda: clock[0])
    job = over(store, 1)
    [key] = names(store, layout.metrics(job.run_id(0)))
    data = slept.get(key).data

    def hours() -> None:
        packer.pack(fresh(store), job, no_wait)
        clock[0] += 3600.0

    sleep_before(store, "download", key, hours)
    slept.download(key, tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == data
    store.inner.put(key, b"late")
    slept.download(key, tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == data
    with pytest.raises(NotFound):
        slept.download(layout.metric_fragment(job.run_id(0), 9, 0, 0), tmp_path / "no")


def test_runs_of_far_stores_are_held_few_at_a_time(
    store: PackedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer, "THREADS", 2)
    job, read, added = over(store, 12), list[str](), list[str]()
    adds, reads = packer._Packs.add, packer._series

    def series(*given: Any) -> Any:
        read.append(given[1])
        assert len(read) - len(added) <= 5
        return reads(*given)

    def add(packs: Any, ready: Any) -> None:
        adds(packs, ready)
        added.append(ready.run)

    monkeypatch.setattr(packer, "_series", series)
    monkeypatch.setattr(packer._Packs, "add", add)
    assert packer.pack(store, job, no_wait).runs == 12
    assert added == [job.run_id(index) for index in range(12)]
