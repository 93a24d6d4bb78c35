from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import packed_world
from hostler.errors import NewerFormatError
from hostler.records import body, layout, rows, trash
from hostler.records.body import encode
from hostler.records.packs import packer
from hostler.records.packs.packed_store import HOLDS, PackedStore
from hostler.records.run import control, log
from hostler.records.run.attempt import Fenced
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import queue, sweeps
from hostler.spec.job import Job
from hostler.store import NotFound, Store
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore
from packed_world import fresh, no_wait, random_sweep, seen, submit, take


@pytest.fixture
def store() -> PackedStore:
    return PackedStore(MemoryStore())


def over(store: PackedStore, count: int = 3, state: str = "done") -> Job:
    job = submit(store, count)
    for index in range(count):
        held = take(store, job, index)
        MetricWriter(store, held.key.run, held.number).write([Point(1, 1.0, {"a": 1.0})])
        held.end(state, attempts=1, metrics={})
    return job


def pack(store: PackedStore, job: Job) -> packer.PackOutcome:
    return packer.pack(store, job, no_wait)


def objects(store: PackedStore) -> list[str]:
    """Keys of the store as it is that a pack could hold."""
    every = [entry.key for entry in store.inner.list("")]
    return [key for key in every if "/log/" in key or "/ends/" in key or key.startswith("runs/")]


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 6))
def test_packed_sweep_reads_as_it_did_before(seed: int, count: int) -> None:
    store = PackedStore(MemoryStore())
    job = random_sweep(store, seed, count)
    before = seen(store, job)
    assert pack(store, job).runs == count
    assert objects(store) == []
    assert seen(fresh(store), job) == before
    assert seen(store, job) == before


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_reopened_runs_go_on_and_are_packed_again(seed: int) -> None:
    store = PackedStore(MemoryStore())
    job = random_sweep(store, seed, 4)
    pack(store, job)
    luck = packed_world.random.Random(seed + 1)
    for index in (1, 3):
        key = RunKey(job.name, job.run_id(index))
        control.retry(store, key, fresh=True)
        packed_world.live(store, job, index, luck)
    before = seen(store, job)
    assert seen(fresh(store), job) == before
    assert pack(store, job).runs == 2
    assert objects(store) == []
    assert seen(fresh(store), job) == before


def test_resumed_run_of_a_packed_sweep_ends_anew(store: PackedStore) -> None:
    job = over(store, state="stopped")
    pack(store, job)
    later, key = fresh(store), RunKey("s", job.run_id(1))
    assert control.resume(later, key) in control.DONE_SO
    assert [run.key for run in queue.Queue(later, job).open()] == [key]
    assert pack(later, job).open == 1
    take(later, job, 1).end("done", attempts=2, metrics={})
    check_packs_whole(later, job, 1)
    assert [row.state for row in rows.rows(fresh(store), ["s"])] == ["stopped", "done", "stopped"]


def test_run_added_to_a_packed_sweep_is_claimed(store: PackedStore) -> None:
    job = over(store)
    pack(store, job)
    longer = replace(job, runs=(*job.runs, {"lr": 9.0}))
    later = fresh(store)
    assert sweeps.submit(later, longer, version=2)
    assert sweeps.load_version(later, "s") == (longer, 2)
    assert queue.Queue(later, longer).glance(10) == [3]
    assert pack(later, longer).open == 1
    take(later, longer, 3).end("done", attempts=1, metrics={})
    check_packs_whole(later, longer, 1)
    assert sweeps.load_version(fresh(store), "s") == (longer, 2)


def check_packs_whole(store: PackedStore, job: Job, runs: int) -> None:
    """So many runs are packed, nothing is left beside the packs, and all is read as before."""
    before = seen(store, job)
    assert pack(store, job).runs == runs
    assert objects(store) == []
    assert seen(fresh(store), job) == before


def test_sweep_of_random_runs_in_a_folder_reads_alike(tmp_path: Path) -> None:
    store = PackedStore(FolderStore(tmp_path))
    job = random_sweep(store, 5, 12)
    before = seen(store, job)
    pack(store, job)
    assert seen(fresh(store), job) == before
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "sweeps" / "s" / "log").exists()


def test_files_of_a_packed_sweep_are_few(tmp_path: Path) -> None:
    store = PackedStore(FolderStore(tmp_path))
    job = over(store, 100)
    assert sum(1 for _ in tmp_path.rglob("*")) > 400
    pack(store, job)
    assert sum(1 for _ in tmp_path.rglob("*")) <= 0.2 * 100


@pytest.mark.parametrize("count", [2, 3])
def test_sweep_with_an_open_run_is_left_alone(store: PackedStore, count: int) -> None:
    job = submit(store, count)
    take(store, job, 0).end("done", attempts=1, metrics={})
    take(store, job, 1)
    before = [entry.key for entry in store.inner.list("")]
    assert pack(store, job).open
    assert [entry.key for entry in store.inner.list("")] == before


def test_second_packing_of_the_same_does_nothing(store: PackedStore) -> None:
    job = over(store)
    pack(store, job)
    before = [entry.key for entry in store.inner.list("")]
    assert pack(store, job) == packer.PackOutcome()
    assert [entry.key for entry in store.inner.list("")] == before


def test_late_end_of_a_fenced_attempt_stays_unseen(store: PackedStore) -> None:
    job = submit(store, 1)
    zombie = take(store, job, 0)
    take(store, job, 0).end("done", attempts=2, metrics={})
    before = seen(store, job)
    pack(store, job)
    with pytest.raises(Fenced):
        zombie.end("failed", attempts=1)
    assert seen(fresh(store), job) == before


def test_late_writes_by_an_older_look_stay_unseen(store: PackedStore) -> None:
    job = submit(store, 1)
    slept = PackedStore(store.inner, clock=lambda: 0.0)  # its clock stood still: the worst that can be
    zombie = take(slept, job, 0)
    take(store, job, 0).end("done", attempts=2, metrics={})
    before = seen(store, job)
    pack(store, job)
    zombie.end("failed", attempts=1)  # it believes so
    MetricWriter(slept, zombie.key.run, 1).write([Point(9, 9.0, {"a": 9.0})])
    assert seen(fresh(store), job) == before
    assert objects(store)
    store.inner.delete(*objects(store))


def test_claim_of_who_slept_through_a_packing_is_lost(store: PackedStore) -> None:
    now = [0.0]
    slept = PackedStore(store.inner, clock=lambda: now[0])
    job = submit(store, 1)
    known = RunLog(slept, RunKey("s", job.run_id(0))).read_on()
    assert known.head == 0
    take(store, job, 0).end("done", attempts=1, metrics={})
    pack(store, job)
    now[0] += HOLDS + 1.0
    assert not known.append({"kind": "claim", "session": "late"})
    assert known.entries[0]["session"] == "w"
    assert objects(store) == []


def test_claim_that_sleeps_right_before_its_put_is_lost(store: PackedStore) -> None:
    now = [0.0]
    slept = PackedStore(store.inner, clock=lambda: now[0])
    job = submit(store, 1)
    known = RunLog(slept, RunKey("s", job.run_id(0))).read_on()

    def sleep(operation: str, key: str) -> None:
        if operation == "put":
            store.inner.before = None
            take(store, job, 0).end("done", attempts=1, metrics={})
            pack(store, job)
            now[0] += HOLDS + 1.0

    assert isinstance(store.inner, MemoryStore)
    store.inner.before = sleep
    assert not known.append({"kind": "claim", "session": "late"})
    assert known.entries[0]["session"] == "w"
    assert objects(store) == []


def test_own_entry_put_again_after_packing_is_still_own(store: PackedStore) -> None:
    job = over(store, 1)
    key = layout.log_entry("s", job.run_id(0), 2)
    data = store.get(key).data
    pack(store, job)
    assert store.put(key, data, if_absent=True)
    assert not store.put(key, encode({"kind": "end", "state": "failed"}), if_absent=True)


@pytest.mark.parametrize("folder", ["/packs/", "/sealed/"])
def test_packer_that_another_was_faster_than_changes_nothing(store: PackedStore, folder: str) -> None:
    job = over(store)
    first = PackedStore(store.inner)

    def meanwhile(operation: str, key: str) -> None:
        if operation == "put" and folder in key:
            store.inner.before = None
            pack(first, job)

    before = seen(store, job)
    assert isinstance(store.inner, MemoryStore)
    store.inner.before = meanwhile
    assert pack(store, job).beaten
    assert seen(fresh(store), job) == before
    seals = [entry.key for entry in store.inner.list(layout.seals("s"))]
    assert len(seals) == len([*store.inner.list(layout.packs("s"))]) == 1


class Killed(BaseException):
    pass


def requests(store: Store, job: Job) -> int:
    """How many requests a packer sends."""
    counted = [0]

    def count(operation: str, key: str) -> None:
        counted[0] += 1

    assert isinstance(store, MemoryStore)
    store.before = count
    pack(PackedStore(store), job)
    store.before = None
    return counted[0]


def worlds() -> Iterator[tuple[MemoryStore, Job]]:
    while True:
        store = MemoryStore()
        yield store, random_sweep(store, 8, 2)


def test_kill_before_any_request_of_a_packer_loses_nothing() -> None:
    made = worlds()
    total = requests(*next(made))
    assert total > 30
    for at in range(total):
        store, job = next(made)
        before, left = seen(store, job), [at]

        def kill(operation: str, key: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        store.before = kill
        with pytest.raises(Killed):
            pack(PackedStore(store), job)
        store.before = None
        assert seen(PackedStore(store), job) == before, at
        pack(PackedStore(store), job)
        assert objects(PackedStore(store)) == [], at
        assert seen(PackedStore(store), job) == before, at


def test_originals_stay_until_the_pause_has_gone_by(store: PackedStore) -> None:
    job = over(store)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        assert len(objects(store)) == 12  # two entries, a copy of the end, points: of three

    packer.pack(store, job, wait)
    assert waited and packer.PAUSE - 1.0 < waited[0] <= packer.PAUSE
    assert objects(store) == []


def test_pack_is_refused_by_a_hostler_that_knows_none(store: PackedStore) -> None:
    pack(store, over(store))
    key = layout.packed_spec("s")
    with pytest.raises(NewerFormatError, match="newer hostler"):
        body.decode(store.get(key).data, key)
    assert sweeps.load_spec(store, "s")[1] == 1


def test_deleted_run_leaves_its_pack(store: PackedStore) -> None:
    job = over(store)
    pack(store, job)
    gone, stays = job.run_id(1), job.run_id(2)
    old = [entry.key for entry in store.inner.list(layout.packs("s"))]
    trash.delete_run(store, gone)
    trash.delete_packed(store, "s", {gone})
    assert trash.emptied(fresh(store), gone)
    assert not trash.emptied(fresh(store), stays)
    assert log.heads(fresh(store), "s") == {job.run_id(n): 2 for n in range(3)}
    with pytest.raises(NotFound):
        store.inner.get(old[0])


def test_many_deleted_runs_cost_one_seal(store: PackedStore) -> None:
    job = over(store, 20)
    pack(store, job)
    gone = {job.run_id(n) for n in range(0, 20, 2)}
    before = seen(store, job)
    trash.delete_packed(store, "s", gone)
    trash.delete_packed(store, "s", gone)
    assert len([*store.inner.list(layout.seals("s"))]) == 2
    assert len([*store.inner.list(layout.packs("s"))]) == 1
    after = seen(fresh(store), job)
    assert {run for run in gone if trash.emptied(fresh(store), run)} == gone
    stay = [job.run_id(n) for n in range(1, 20, 2)]
    assert [after[run] for run in stay] == [before[run] for run in stay]
    assert after["heads"] == before["heads"] and after["ends"] == before["ends"]


def test_late_writes_of_a_packed_run_go_with_it(store: PackedStore) -> None:
    job = over(store, 1)
    pack(store, job)
    run = job.run_id(0)
    MetricWriter(PackedStore(store.inner), run, 1).write([Point(9, 9.0, {"a": 9.0})])
    trash.delete_run(store, run)
    assert [*store.inner.list(layout.run(run))] == []


def test_packed_copies_of_ends_keep_their_time(store: PackedStore) -> None:
    job = over(store)
    before = [(entry.key, entry.modified) for entry in store.list(layout.ends("s"))]
    pack(store, job)
    assert [(entry.key, entry.modified) for entry in fresh(store).list(layout.ends("s"))] == before


def test_deleted_sweep_leaves_nothing(store: PackedStore) -> None:
    job = over(store)
    pack(store, job)
    for index in range(3):
        trash.delete_run(store, job.run_id(index))
    trash.delete_sweep(store, "s")
    assert [entry.key for entry in store.inner.list("")] == []
    assert log.heads(store, "s") == {}


def test_damaged_run_stays_as_it_is(store: PackedStore) -> None:
    job = over(store)
    key = layout.log_entry("s", job.run_id(1), 1)
    store.inner.put(key, b"{")
    found = pack(store, job)
    assert (found.runs, found.left) == (2, 1)
    assert {layout.run_of_log_entry(k) for k in objects(store) if "/log/" in k} == {job.run_id(1)}


def test_run_with_much_output_keeps_it(store: PackedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "LARGE", 10)
    job = over(store, 1)
    before = seen(store, job)
    pack(store, job)
    assert [key.split("/")[2] for key in objects(store)] == ["metrics"]
    assert seen(fresh(store), job) == before
