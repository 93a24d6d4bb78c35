"""Runs of a store, kept up to date."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from hostler.analysis.board import shape
from hostler.analysis.board.live import WHOLE, LiveStore
from hostler.analysis.board.watcher import Watcher
from hostler.records import layout
from hostler.records.packs import packer
from hostler.records.packs.packed_store import PackedStore
from hostler.records.rows import Row, rows
from hostler.records.run import heartbeats
from hostler.records.run.control import retry, stop
from hostler.records.run.log import RunKey
from hostler.records.series import packing
from hostler.records.sweep import sweeps
from hostler.store.folder import FolderStore
from seen_world import Seen, gallery, learning


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 0.5
        return self.now


class Counting(FolderStore):
    """Counts what is read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.got: list[str] = []

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Any:
        self.got.append(key)
        return super().get(key, start=start, end=end)


@pytest.fixture
def seen(tmp_path: Path) -> Seen:
    return gallery(tmp_path / "store")


def live(seen: Seen) -> tuple[LiveStore, Counting]:
    store = Counting(seen.folder)
    return LiveStore(store, Clock()), store


def plain(row: Row) -> dict[str, Any]:
    return {k: repr(v) for k, v in vars(row).items() if k not in ("beat_age", "stale")}


def test_it_shows_what_status_shows(seen: Seen) -> None:
    here, _ = live(seen)
    assert here.look()
    for name in ("cifar-grid", "odd-values", "empty"):
        found = [plain(row) for row in here.sweeps[name].rows.values()]
        assert found == [plain(row) for row in rows(seen.store, [name])]


def test_a_look_at_what_has_not_changed_reads_no_run(seen: Seen) -> None:
    here, store = live(seen)
    here.look()
    version = here.version
    for _ in range(WHOLE + 2):
        store.got.clear()
        assert not here.look()
        assert [key for key in store.got if "/log/" in key] == []
    assert here.version == version


def test_only_the_changed_run_is_read_and_gets_a_version(seen: Seen) -> None:
    here, store = live(seen)
    here.look()
    before, job = here.version, sweeps.load(seen.store, "cifar-grid")
    seen.end(job, 26, "done", learning({"lr": 0.03}))
    store.got.clear()
    assert here.look()
    one = here.sweeps["cifar-grid"]
    assert [run for run, version in one.versions.items() if version > before] == [job.run_id(26)]
    assert one.rows[job.run_id(26)].state == "done"
    assert {RunKey("cifar-grid", key.rsplit("/", 1)[1]).index for key in store.got if "/log/" in key} <= {
        26,
        29,
    }


def test_a_beat_brings_new_values_of_the_runs_it_carries(seen: Seen) -> None:
    here, _ = live(seen)
    here.look()
    job = sweeps.load(seen.store, "cifar-grid")
    seen.beat(job, 26, 2, 18, accuracy=0.875)
    assert here.look()
    row = here.sweeps["cifar-grid"].rows[job.run_id(26)]
    assert (row.step, row.metrics["accuracy"]) == (18, 0.875)


def test_run_reopened_in_a_calm_sweep_is_found_eventually(seen: Seen) -> None:
    here, _ = live(seen)
    job = sweeps.load(seen.store, "odd-values")
    here.look()
    assert retry(seen.store, RunKey("odd-values", job.run_id(3))) == "queued again"
    assert any(here.look() for _ in range(WHOLE))
    assert here.sweeps["odd-values"].rows[job.run_id(3)].state == "queued"


def test_heartbeat_still_for_a_lease_makes_its_runs_silent(seen: Seen) -> None:
    here, _ = live(seen)
    here.look()
    job = sweeps.load(seen.store, "cifar-grid")
    assert not here.sweeps["cifar-grid"].rows[job.run_id(26)].stale
    for _ in range(40):  # twenty seconds of the clock; the lease is fifteen
        here.look()
    assert here.sweeps["cifar-grid"].rows[job.run_id(26)].stale
    heartbeats.beat(seen.store, "w-1", 9, {"runs": {}})
    here.look()
    assert not here.sweeps["cifar-grid"].rows[job.run_id(26)].stale


def test_sweeps_come_and_go(seen: Seen) -> None:
    here, _ = live(seen)
    here.look()
    seen.submit("new", [{"lr": 1}])
    assert here.look()
    assert "new" in here.sweeps
    shutil.rmtree(seen.folder / "sweeps" / "new")
    assert here.look()
    assert "new" not in here.sweeps


def test_a_stop_and_a_trashed_run_are_seen(seen: Seen) -> None:
    here, _ = live(seen)
    here.look()
    job = sweeps.load(seen.store, "cifar-grid")
    stop(seen.store, RunKey("cifar-grid", job.run_id(26)))
    sweeps.put_in_trash(seen.store, "cifar-grid", job.run_id(0))
    here.look()
    found = here.sweeps["cifar-grid"].rows
    assert found[job.run_id(26)].stop == "person"
    assert found[job.run_id(0)].trashed


def test_damaged_entry_costs_one_run_and_damaged_spec_one_sweep(seen: Seen) -> None:
    job = sweeps.load(seen.store, "cifar-grid")
    broken = next((seen.folder / "sweeps/cifar-grid/log").glob("0000003-*-000002.json"))
    broken.write_bytes(b'{"format": 1, "ki')
    spec = next((seen.folder / "sweeps/odd-values/spec").iterdir())
    spec.write_bytes(b"\xff\xfe")
    here, _ = live(seen)
    here.look()
    assert here.sweeps["cifar-grid"].rows[job.run_id(3)].state == "unreadable"
    assert here.sweeps["cifar-grid"].rows[job.run_id(4)].state == "done"
    assert "not a hostler record" in here.sweeps["odd-values"].trouble
    assert here.trouble == ""


def test_unreadable_store_is_reported_and_found_again(seen: Seen) -> None:
    here, store = live(seen)
    here.look()
    from hostler.errors import StoreUnreachable

    def refuse(*_: Any, **__: Any) -> Any:
        raise StoreUnreachable("the bucket does not answer")

    store.list = refuse  # type: ignore[method-assign]
    assert here.look()
    assert "does not answer" in here.trouble
    assert len(here.sweeps["cifar-grid"].rows) == 36
    del store.list  # type: ignore[method-assign]
    assert here.look()
    assert here.trouble == ""


def test_huge_waiting_sweep_is_counted_without_making_rows(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("huge", [{"n": n} for n in range(20_001)])
    seen.claim(job, 7)
    here, _ = live(seen)
    here.look()
    assert len(here.sweeps["huge"].rows) == 1
    assert here.sweeps["huge"].waiting == 20_000


def test_runs_in_segments_have_the_parameters_they_were_given(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    grid = [{"lr": n / 10, "net": {"width": n, "kind": None if n % 2 else "wide"}} for n in range(120)]
    job = seen.submit("many", grid)
    for index in range(len(grid)):
        seen.claim(job, index)
        seen.end(job, index, "done")
    plain, _ = live(seen)
    plain.look()
    packing.compact(seen.store, job)
    packed, _ = live(seen)
    packed.look()
    for run, row in plain.sweeps["many"].rows.items():
        assert shape.row(packed.sweeps["many"].rows[run]) == shape.row(row)


def test_what_the_first_look_finds_is_no_change(seen: Seen) -> None:
    here, _ = live(seen)
    here.look()
    assert {version for one in here.sweeps.values() for version in one.versions.values()} == {0}
    assert all(one.whole for one in here.sweeps.values())


def test_the_sweep_that_somebody_waits_for_is_read_first(seen: Seen) -> None:
    here, store = live(seen)
    here.asked = "odd-values"
    here.look()
    specs = [key for key in store.got if "/spec/" in key]
    assert specs[0].startswith("sweeps/odd-values/")
    assert {key.split("/")[1] for key in specs} == set(here.sweeps)


def test_rows_come_in_index_order_however_segments_hold_them(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("many", [{"lr": n} for n in range(250)])
    for index in reversed(range(250)):
        seen.claim(job, index)
        seen.end(job, index, "done")
        if index in (150, 50):
            packing.compact(seen.store, job)
    here, _ = live(seen)
    here.look()
    assert [row.index for row in here.sweeps["many"].rows.values()] == list(range(250))
    assert here.sweeps["many"].expected == 250


def test_segment_without_its_promised_content_is_passed_over(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "store")
    job = seen.submit("many", [{"lr": n} for n in range(120)])
    for index in range(120):
        seen.claim(job, index)
        seen.end(job, index, "done")
    packing.compact(seen.store, job)
    for path in (seen.folder / "sweeps/many/segments").iterdir():
        path.write_bytes(path.read_bytes().replace(b'"params":{', b'"parms" :{'))
    here, _ = live(seen)
    here.look()
    assert [row.params["lr"] for row in here.sweeps["many"].rows.values()] == list(range(120))
    assert here.sweeps["many"].trouble == ""


@pytest.mark.parametrize(
    "data", [b"[" * 200_000, b'{"format":1,"kind":"end","state":"done","at":1e999}'], ids=["deep", "odd"]
)
def test_watcher_survives_a_bad_entry_and_shows_the_rest(seen: Seen, data: bytes) -> None:
    job = sweeps.load(seen.store, "cifar-grid")
    (seen.folder / layout.log_entry("cifar-grid", job.run_id(3), 2)).write_bytes(data)
    watcher = Watcher(seen.store, near=True)
    watcher.start()
    try:
        assert watcher.ready.wait(30)
        rows = watcher.live.sweeps["cifar-grid"].rows
        assert rows[job.run_id(3)].state == "unreadable" and rows[job.run_id(0)].state == "done"
        assert watcher._thread.is_alive()
    finally:
        watcher.stop()


def test_watcher_survives_an_error_that_is_not_ours(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[str]:
        raise RecursionError("too deep")

    monkeypatch.setattr(sweeps, "names", fail)
    live = LiveStore(seen.store, lambda: 0.0)
    assert live.look() and "too deep" in live.trouble
    monkeypatch.undo()
    assert live.look() and not live.trouble and live.sweeps


def test_packing_changes_nothing_that_is_shown(seen: Seen) -> None:
    store = PackedStore(FolderStore(seen.folder))
    watched = LiveStore(store, Clock())
    watched.look()
    before = [plain(row) for row in watched.sweeps["odd-values"].rows.values()]
    packer.pack(store, sweeps.load(store, "odd-values"), lambda seconds: None)
    assert not any((seen.folder / "sweeps" / "odd-values" / "log").glob("*"))
    for here in (watched, LiveStore(PackedStore(FolderStore(seen.folder)), Clock())):
        here.look()
        assert [plain(row) for row in here.sweeps["odd-values"].rows.values()] == before
