from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.records import layout, rows
from hostler.records.run import control
from hostler.records.run import log as run_log
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series import packing, segments
from hostler.records.series.metrics import MetricWriter, Origin
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Store, open_store
from hostler.store.memory import MemoryStore


@pytest.fixture
def store() -> Store:
    return open_store("memory:")


def submit(store: Store, count: int) -> Job:
    job = Job(name="s", command=("x",), runs=tuple({"lr": n / 10} for n in range(count)), metric="a")
    assert sweeps.submit(store, job)
    return job


def attempt(store: Store, job: Job, index: int, value: float, origin: Origin | None = None) -> Any:
    key = RunKey(job.name, job.run_id(index))
    held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("s", facts={"host": "h"}))
    assert held is not None
    writer = MetricWriter(store, key.run, held.number)
    if held.number > 1:
        writer.continue_from(origin)
    writer.write([Point(n, float(n), {"a": value + n}) for n in range(3)])
    return held


def test_ended_runs_are_packed_once_and_running_ones_are_not(store: Store) -> None:
    job = submit(store, 8)
    for index in range(6):
        attempt(store, job, index, index).end("done", attempts=1, metrics={})
    attempt(store, job, 6, 6.0)
    assert packing.compact(store, job) == 6
    assert packing.compact(store, job) == 0
    there = packing.covered(packing.read(store, "s"), run_log.heads(store, "s"))
    assert sorted(there.rows) == [job.run_id(n) for n in range(6)]


def test_reopened_run_is_void_in_its_segment(store: Store) -> None:
    job = submit(store, 8)
    for index in range(8):
        attempt(store, job, index, index).end("failed", attempts=1, why="x")
    packing.compact(store, job)
    control.retry(store, RunKey("s", job.run_id(3)))
    newest = run_log.heads(store, "s")
    assert job.run_id(3) not in packing.ends(store, "s", newest)
    assert [row.state for row in rows.rows(store)].count("queued") == 1
    attempt(store, job, 3, 50.0).end("done", attempts=2)
    assert packing.compact(store, job) == 1
    assert packing.ends(store, "s", run_log.heads(store, "s"))[job.run_id(3)]["state"] == "done"


def test_stray_files_beside_a_log_hide_none_of_it(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    job = submit(store, 2)
    held = attempt(store, job, 0, 0.0)
    held.end("done", attempts=1)
    for stray in (".json~", " (copy).json", ".json.bak"):
        (tmp_path / (layout.log_entry("s", job.run_id(0), 2).removesuffix(".json") + stray)).touch()
    (tmp_path / layout.logs_of("s") / "notes-000009.json").touch()
    assert run_log.heads(store, "s") == {job.run_id(0): 2}


def test_rows_are_the_same_from_segments_as_from_logs(store: Store) -> None:
    job = submit(store, 8)
    total = {"a": {"last": 2.0, "min": 0.0, "max": 2.0, "step": 2}}
    for index in range(8):
        failure = {"kind": "exit", "message": "no", "traceback": "T"} if index % 2 else None
        facts = {"attempts": 1, "seconds": 1.5, "total": 2.5, "host": "h", "exit": index, "started": 3.0}
        held = attempt(store, job, index, 0.0)
        held.end("failed" if failure else "done", metrics=total, failure=failure, step=2, code="c", **facts)
    before = rows.rows(store)
    packing.compact(store, job)
    counted: list[str] = []
    assert isinstance(store, MemoryStore)
    store.before = lambda op, key: counted.append(key) if op == "get" else None
    assert rows.rows(store) == before
    assert [key for key in counted if "/log/" in key] == []


def test_two_that_pack_the_same_runs_do_no_harm(store: Store) -> None:
    job = submit(store, 8)
    for index in range(8):
        attempt(store, job, index, index).end("done", attempts=1, metrics={})
    packing.compact(store, job)
    again = segments.decode(store.get(layout.segment("s", 1)).data, "x")
    store.put(layout.segment("s", 2), store.get(layout.segment("s", 1)).data + b"", if_absent=True)
    newest = run_log.heads(store, "s")
    assert len(packing.ends(store, "s", newest)) == len(again.runs) == 8
    assert len(rows.rows(store)) == 8


def test_damaged_segment_is_reported_and_its_runs_read_singly(store: Store) -> None:
    job = submit(store, 8)
    for index in range(8):
        attempt(store, job, index, index).end("done", attempts=1, metrics={})
    store.put(layout.segment("s", 1), b"HSTS\x01\x00\x00\x00\x09\x00\x00\x00no more")
    said: list[str] = []
    assert packing.read(store, "s", say=said.append) == {} and "not a whole segment" in said[0]
    assert {row.state for row in rows.rows(store)} == {"done"}


@pytest.mark.parametrize("block", [packing.BLOCK, 3 << 18, 1 << 10])  # of all, of a few, of none
def test_long_segments_of_a_folder_share_blocks_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(packing, "BLOCK", block)
    store = open_store(str(tmp_path))
    points = [Point(n, 1.0, {"a": float(n)}) for n in range(9000)]
    for n in range(5):
        packed = segments.packed(f"{n:07d}-s-abcdef", 2, {"state": "done", "host": "h" * n}, {}, points[n:])
        segments.write(store, "s", [packed], n)
    store.put(layout.segment("s", 6), store.get(layout.segment("s", 5)).data[:-8])
    (tmp_path / layout.segment("s", 7)).write_bytes(b"")
    said: list[str] = []
    found = packing.read(store, "s", {2}, said.append)
    assert list(found) == [1, 3, 4, 5] and len(said) == 2
    for n, segment in found.items():
        alone = segments.decode(store.get(layout.segment("s", n)).data, "alone")
        assert segment.header == alone.header and segment.blocks == alone.blocks


def test_the_curve_of_a_resumed_run_is_the_chain_s(store: Store) -> None:
    job = submit(store, 1)
    attempt(store, job, 0, 0.0)
    attempt(store, job, 0, 100.0, Origin(1, 1, 1)).end("done", attempts=2)
    key = RunKey("s", job.run_id(0))
    end = packing.end_of(store, key, 3)
    assert end is not None
    (track,) = packing.pack(store, key, 3, end, {}).tracks or ()
    assert track.values["a"].tolist() == [100.0, 101.0, 102.0]


def test_a_copy_of_another_sweep_s_run_has_its_curve(store: Store) -> None:
    job = submit(store, 1)
    attempt(store, job, 0, 7.0).end("done", attempts=1)
    end = {"kind": "end", "state": "done", "attempt": 0, "copy_of": job.run_id(0)}
    assert [point.values["a"] for point in packing.points(store, "0000000-other", end)] == [7.0, 8.0, 9.0]
