from __future__ import annotations

import math
import os
import re
import shutil
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import Filled

import hostler
import servers
from hostler.analysis import cache, reading
from hostler.analysis.frame import columns
from hostler.analysis.plots.source import source
from hostler.errors import DamagedError, MissingError, StoreError, UsageError
from hostler.records import defaults, layout, project, trash
from hostler.records.rows import rows
from hostler.records.run import control
from hostler.records.run import log as run_log
from hostler.records.run.log import RunKey
from hostler.records.series import metrics, packing
from hostler.records.series.metrics import Origin
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import Queue
from hostler.settings import Timing
from hostler.spec import space, spans
from hostler.spec.job import Job, Objective
from hostler.spec.rounds import Round
from hostler.store.folder import FolderStore

pandas = servers.library("pandas")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def filled(tmp_path: Path) -> Filled:
    return Filled(str(tmp_path / "store"))


def same(one: Any, other: Any) -> None:
    """Frames with the same columns and cells, arrays among them."""
    assert list(one.columns) == list(other.columns)
    for name in one.columns:
        for left, right in zip(one[name], other[name], strict=True):
            both_absent = left is pandas.NaT and right is pandas.NaT
            equal = np.array_equal(np.asarray(left), np.asarray(right), equal_nan=_is_number(left))
            assert both_absent or equal, name


def _is_number(cell: Any) -> bool:
    return isinstance(cell, float) or getattr(cell, "dtype", None) == np.float64


def read_keys(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read from folders from now on."""
    found: list[str] = []
    get = FolderStore.get

    def counting(self: FolderStore, key: str, **given: Any) -> Any:
        found.append(key)
        return get(self, key, **given)

    monkeypatch.setattr(FolderStore, "get", counting)
    return found


def test_curves_are_columns_of_arrays(filled: Filled) -> None:
    job = filled.sweep("s", [{"lr": 1}, {"lr": 2}, {"lr": 3}])
    filled.done(job, 0, 3.0, 1.0, 2.0)
    filled.done(job, 1, 7.0)
    frame = hostler.frame(filled.url)
    assert frame["a.curve"][0].tolist() == [3.0, 1.0, 2.0] and frame["a.steps"][0].tolist() == [0, 1, 2]
    assert frame["a.curve"][1].tolist() == [7.0] and len(frame["a.curve"][2]) == 0
    assert "a.curve" not in hostler.frame(filled.url, curves=False)
    assert "a.curve" in hostler.frame(filled.url, curves=["a"])


def test_frame_is_the_same_from_logs_segments_and_cache(filled: Filled, own_cache: Path) -> None:
    job = filled.sweep("s", [{"lr": n / 7, "model": {"width": n}, "tags": ["x", n]} for n in range(30)])
    for index in range(25):
        points = [Point(n, 100.0 + n, {"a": index + n, **({"b": 1.0} if n % 2 else {})}) for n in range(5)]
        facts = {"attempts": 1, "total": 1.5, "host": "h", "started": 9.0, "step": 4, "exit": 0}
        filled.attempt(job, index, points).end("done" if index % 5 else "failed", **facts)
    filled.attempt(job, 25, [Point(0, 1.0, {"a": 3.0})])
    filled.attempt(job, 26, [Point(0, 1.0, {"a": 3.0}), Point(1, 1.0, {"a": 9.0})])
    filled.attempt(job, 26, [Point(1, 2.0, {"a": 4.0})], origin=Origin(1, 1, 1)).end("done", attempts=2)
    plain = hostler.frame(filled.url)
    curves = hostler.curves(filled.url)
    same(plain, hostler.frame(filled.url))
    shutil.rmtree(own_cache)
    assert packing.compact(filled.store, job) == 26
    same(plain, hostler.frame(filled.url))
    same(plain, hostler.frame(filled.url))
    pandas.testing.assert_frame_equal(curves, hostler.curves(filled.url))
    assert plain["a.curve"][26].tolist() == [3.0, 4.0]


def test_only_what_is_new_is_read(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    job = filled.sweep("s", [{"lr": n} for n in range(20)])
    for index in range(19):
        filled.done(job, index, 1.0, 2.0)
    first = hostler.frame(filled.url)
    seen = read_keys(monkeypatch)
    same(first, hostler.frame(filled.url))
    assert [key for key in seen if key.startswith(("sweeps/s/log/", "runs/", "sweeps/s/segments"))] == []
    filled.done(job, 19, 5.0)
    seen.clear()
    assert hostler.frame(filled.url)["a"][19] == 5.0
    assert {key.split("/")[1] for key in seen if key.startswith("runs/")} == {job.run_id(19)}


def test_segments_are_read_once(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    job = filled.sweep("s", [{"lr": n} for n in range(12)])
    for index in range(12):
        filled.done(job, index, 1.0)
    packing.compact(filled.store, job)
    seen = read_keys(monkeypatch)
    hostler.frame(filled.url)
    hostler.frame(filled.url)
    assert [key for key in seen if "/segments/" in key] == [layout.segment("s", 1)]
    assert [key for key in seen if key.startswith("runs/")] == []


def test_reopened_run_is_shown_in_its_present_state(filled: Filled) -> None:
    job = filled.sweep("s", [{"lr": n} for n in range(8)])
    for index in range(8):
        filled.attempt(job, index, [Point(0, 0.0, {"a": 1.0})]).end("failed", attempts=1)
    packing.compact(filled.store, job)
    assert list(hostler.frame(filled.url)["state"]) == ["failed"] * 8
    control.retry(filled.store, RunKey("s", job.run_id(2)))
    assert hostler.frame(filled.url)["state"][2] == "queued"
    filled.attempt(job, 2, [Point(0, 0.0, {"a": 6.0})]).end("done", attempts=2)
    row = hostler.frame(filled.url).iloc[2]
    assert (row["state"], row["a"], row["attempts"]) == ("done", 6.0, 2)


def test_a_listing_is_made_again_when_a_name_came(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    job = filled.sweep("s", [{}, {}])
    filled.done(job, 0, 1.0)
    log = Path(filled.url) / layout.logs_of("s")
    os.utime(log, (time.time() - 60,) * 2)  # long settled
    listed: list[str] = []
    whole = run_log.heads
    monkeypatch.setattr(run_log, "heads", lambda store, name: listed.append(name) or whole(store, name))
    for _ in range(3):
        assert len(hostler.frame(filled.url, state="done")) == 1
    assert listed == ["s"]
    filled.done(job, 1, 2.0)
    assert len(hostler.frame(filled.url, state="done")) == 2 and len(listed) == 2


def test_a_folder_that_has_just_changed_is_listed_every_time(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.done(filled.sweep("s", [{}]), 0, 1.0)
    listed: list[str] = []
    whole = run_log.heads
    monkeypatch.setattr(run_log, "heads", lambda store, name: listed.append(name) or whole(store, name))
    hostler.frame(filled.url)
    hostler.frame(filled.url)
    assert len(listed) == 2


@pytest.mark.parametrize("damage", [b"", b"rubbish", b"HSTS" + b"\xff" * 60, None])
def test_a_damaged_cache_is_read_past(filled: Filled, own_cache: Path, damage: bytes | None) -> None:
    job = filled.sweep("s", [{"lr": n} for n in range(8)])
    for index in range(8):
        filled.done(job, index, 1.0, 2.0)
    first = hostler.frame(filled.url)
    for path in own_cache.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            path.write_bytes(data[: len(data) // 2] if damage is None else damage)
    same(first, hostler.frame(filled.url))


def test_a_cache_that_cannot_be_written_is_done_without(
    filled: Filled, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.done(filled.sweep("s", [{}]), 0, 1.0)
    own_cache.write_text("a file where the folder would be")
    assert hostler.frame(filled.url)["a"][0] == 1.0


def test_a_sweep_that_was_deleted_and_submitted_again_is_another(filled: Filled) -> None:
    job = filled.sweep("s", [{"lr": 1}])
    filled.done(job, 0, 1.0)
    assert hostler.frame(filled.url)["a"][0] == 1.0
    trash.delete_run(filled.store, job.run_id(0))
    trash.delete_sweep(filled.store, "s")
    filled.done(filled.sweep("s", [{"lr": 1}]), 0, 2.0)
    assert hostler.frame(filled.url)["a"][0] == 2.0


def test_many_small_parts_of_the_cache_become_one(filled: Filled, own_cache: Path) -> None:
    job = filled.sweep("s", [{"lr": n} for n in range(12)])
    for index in range(12):
        filled.done(job, index, float(index))
        hostler.frame(filled.url)
    parts = [path for path in own_cache.rglob("*") if path.is_file() and not path.suffix]
    assert len(parts) <= cache.MANY
    assert list(hostler.frame(filled.url)["a"]) == [float(n) for n in range(12)]


def test_mixed_types_nan_and_infinities_come_through_as_they_are(filled: Filled) -> None:
    values = [1, "one", None, [1, 2], {"deep": 1}, True, math.inf, 10**30]
    job = filled.sweep("s", [{"x": value} for value in values])
    for index in range(len(values)):
        filled.done(job, index, math.nan, math.inf, -math.inf)
    for _ in range(2):
        frame = hostler.frame(filled.url)
        assert [frame["x"][n] for n in (0, 1, 3, 5, 6, 7)] == [1, "one", [1, 2], True, math.inf, 10**30]
        assert frame["x.deep"][4] == 1 and frame["x"][5] is True
        assert (frame["a"][0], frame["a.best"][0]) == (-math.inf, math.inf)
        assert np.isnan(frame["a.curve"][0][0])


def test_metric_that_only_some_runs_have_is_empty_in_others(filled: Filled) -> None:
    one, two = filled.sweep("one", [{"lr": 1}]), filled.sweep("two", [{"width": 2}])
    filled.attempt(one, 0, [Point(0, 0.0, {"a": 1.0})]).end("done")
    filled.attempt(two, 0, [Point(0, 0.0, {"b": 2.0})]).end("done")
    frame = hostler.frame(filled.url)
    assert math.isnan(frame["b"][0]) and frame["b"][1] == 2.0 and len(frame["b.curve"][0]) == 0
    assert math.isnan(frame["width"][0]) and frame["width"][1] == 2


def test_a_million_points_are_there_and_nothing_is_thinned(filled: Filled) -> None:
    job = filled.sweep("s", [{}])
    held = filled.attempt(job, 0, [])
    from hostler.records.series.metrics import MetricWriter

    writer = MetricWriter(filled.store, held.key.run, held.number)
    writer._sequence = 1
    for part in range(10):
        writer.write(
            [Point(n, float(n), {"a": float(n)}) for n in range(part * 100_000, (part + 1) * 100_000)]
        )
    held.end("done")
    for _ in range(2):
        frame = hostler.frame(filled.url)
        assert len(frame["a.curve"][0]) == 1_000_000 and frame["a"][0] == 999_999
    assert len(hostler.curves(filled.url)) == 1_000_000


def test_half_written_store_is_shown_as_far_as_it_goes(filled: Filled) -> None:
    job = filled.sweep("s", [{"lr": n} for n in range(4)])
    for index in range(3):
        filled.done(job, index, 1.0)
    root = Path(filled.url)
    (root / layout.log_entry("s", job.run_id(1), 2)).write_bytes(b'{"kind": "en')
    (root / layout.metric_fragment(job.run_id(2), 1, 0, 0)).write_bytes(b"HST")
    with pytest.warns(UserWarning, match="is not a"):
        frame = hostler.frame(filled.url)
    assert list(frame["lr"]) == [0, 2, 3] and list(frame["state"]) == ["done", "done", "queued"]
    (root / layout.spec("s", 1)).write_bytes(b"{")
    filled.sweep("t", [{}])
    with pytest.warns(UserWarning, match="s is left out"):
        assert list(hostler.frame(filled.url)["sweep"]) == ["t"]
    with pytest.raises(DamagedError):
        hostler.frame(filled.url, "s")


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_store_without_rights_is_said(filled: Filled) -> None:
    filled.sweep("s", [{}])
    Path(filled.url, "sweeps").chmod(0)
    try:
        with pytest.raises(StoreError):
            hostler.frame(filled.url)
    finally:
        Path(filled.url, "sweeps").chmod(0o755)


def test_a_store_that_may_only_be_read_is_read(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.done(filled.sweep("s", [{}]), 0, 1.0)
    monkeypatch.setattr(FolderStore, "put", lambda *given, **named: pytest.fail("a reader wrote"))
    assert len(hostler.frame(filled.url)) == 1


def test_filters_by_value_list_interval_pattern_function_and_their_opposites(filled: Filled) -> None:
    runs = [{"lr": 0.1, "m": "resnet"}, {"lr": 0.2, "m": "vgg"}, {"lr": 0.3, "m": "resnext"}, {"m": 5}]
    filled.sweep("s", runs)

    def kept(**where: Any) -> list[int]:
        return list(hostler.frame(filled.url, where=where)["index"])

    assert kept(lr=0.2) == [1]
    assert kept(lr=[0.1, 0.3]) == kept(lr={0.1, 0.3}) == [0, 2]
    assert kept(lr=slice(0.15, 0.3)) == [1, 2] and kept(lr=slice(None, 0.1)) == [0]
    assert kept(m=re.compile("^res")) == [0, 2]
    assert kept(m=lambda value: value == 5) == [3]
    assert kept(m=hostler.isnt("vgg")) == [0, 2, 3]
    assert kept(lr=hostler.isnt(slice(0.15, None))) == [0, 3]
    assert kept(m=re.compile("res"), lr=0.1) == [0]
    with pytest.raises(UsageError, match="no column named 'lrr'"):
        kept(lrr=1)


def test_large_frame_is_cached_later_and_next_reader_waits(
    filled: Filled, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MUCH", 1)
    monkeypatch.setattr(cache, "PAUSE", 0.0)
    job = filled.sweep("s", [{"lr": n} for n in range(3)])
    for index in range(3):
        filled.done(job, index, float(index))
    written = threading.Event()
    write = cache.Cache._write

    def slow(self: cache.Cache, *words: Any) -> bool:
        assert written.wait(60)
        return write(self, *words)

    monkeypatch.setattr(cache.Cache, "_write", slow)
    assert list(hostler.frame(filled.url)["a"]) == [0.0, 1.0, 2.0]  # though nothing is written yet
    assert not list(own_cache.rglob("frames/*/*/*"))
    written.set()
    again = cache.Cache(filled.store, "s")
    assert [part.rows for part in again.parts] == [3]


@pytest.mark.parametrize("odd", [False, True])
def test_merged_curve_is_read_as_it_was(filled: Filled, odd: bool) -> None:
    job = filled.sweep("s", [{}])
    run = job.run_id(0)
    filled.attempt(job, 0, []).end("done")
    writer = metrics.MetricWriter(filled.store, run, 1)
    for n in range(5):
        writer.write([Point(n, 1.0, {"a": float(n), **({"b": 0.5} if odd and n == 3 else {})})])
    before = [reading.long_tracks(filled.store, run, 1), metrics.read(filled.store, run, 1)]
    deleted = list[str]()
    kept, filled.store.delete = filled.store.delete, lambda *keys: deleted.extend(keys)  # type: ignore[method-assign]
    writer.pack()
    for keys in ([], deleted[:2], deleted):  # killed before, inside and after what it deletes
        kept(*keys)
        tracks = reading.long_tracks(filled.store, run, 1)
        assert [list(one.steps) for one in tracks] == [list(one.steps) for one in before[0]]
        assert metrics.read(filled.store, run, 1) == before[1]
    assert isinstance(tracks[0].steps, np.ndarray) is not odd  # as a table, unless its points differ


def test_unknown_names_are_refused_with_the_nearest_known_name(filled: Filled) -> None:
    filled.done(filled.sweep("first", [{"lr": 1}]), 0, 1.0)
    with pytest.raises(UsageError, match=r"no state named 'nope' .choose from: queued, running"):
        hostler.frame(filled.url, state="nope")
    with pytest.raises(UsageError, match=r"no state named 'doen' .did you mean 'done'"):
        hostler.frame(filled.url, state=["failed", "doen"])
    with pytest.raises(UsageError, match=r"no metric named 'b' .choose from: a"):
        hostler.frame(filled.url, curves=["b"])
    with pytest.raises(UsageError, match=r"no metric named 'b'"):
        hostler.curves(filled.url, metric="b")
    with pytest.raises(UsageError, match=r"no run named 'firt' .did you mean 'first'"):
        hostler.curves(filled.url, run=["firt"])
    with pytest.raises(MissingError, match=r"no sweep named 'frist' .*did you mean 'first'"):
        hostler.frame(filled.url, "frist")
    with pytest.raises(UsageError, match=r"no column named 'stat' .did you mean 'state'"):
        hostler.frame(filled.url, where={"stat": "done"})
    assert len(hostler.frame(filled.url, state=["done", "failed"], curves=["a"])) == 1


def test_before_anything_is_logged_any_metric_may_be_asked_for(filled: Filled) -> None:
    filled.sweep("s", [{"lr": 1}])
    assert len(hostler.frame(filled.url, curves=["loss"])) == 1
    assert len(hostler.curves(filled.url, metric="loss")) == 0


def test_values_that_were_defaults_are_filled_in_as_they_were(filled: Filled) -> None:
    project.ensure(filled.store, "p", Timing())
    defaults.note(filled.store, ("python", "train.py"), {"lr": 0.1, "width": 8})
    first = defaults.history(filled.store)[0][0]
    job = filled.sweep("s", [{"seed": 0}, {"seed": 1, "lr": 0.5}, {"seed": 2}, {"seed": 3}])
    for index, started in enumerate([first + 1, first + 1, first + 1e6, first - 50]):
        own = {"more": {"config": {"momentum": 0.9}}} if index == 0 else {}
        filled.done(job, index, 1.0, started=started, **own)
    record = project.newest(filled.store, layout.PROJECT)
    assert record is not None
    changed = {**record[1], "defaults": {"python train.py": {"lr": 0.2, "width": 8}}, "at": first + 1e5}
    from hostler.records.body import encode

    filled.store.put(layout.project(record[0] + 1), encode(changed))
    frame = hostler.frame(filled.url)
    assert list(frame["lr"]) == [0.1, 0.5, 0.2, 0.1]
    assert list(frame["width"]) == [8, 8, 8, 8] and frame["momentum"][0] == 0.9


def test_rounds_sections_tags_and_trash_are_in_the_frame(filled: Filled) -> None:
    one = space.parse({"lr": [1, 2]})
    two = space.parse({"lr": [3]}, sections=[{"a": 1}, {"a": 2}])
    rounds = tuple(Round(found, spans.whole(found.count), ("x",)) for found in (one, two))
    job = Job(name="s", command=("x",), runs=(), rounds=rounds, tags=("t",))
    assert sweeps.submit(filled.store, job)
    sweeps.tag(filled.store, "s", job.run_id(1), ["mine"], [])
    for index in range(4):
        filled.done(job, index, 1.0)
    sweeps.put_in_trash(filled.store, "s", job.run_id(0))
    frame = hostler.frame(filled.url)
    assert list(frame["round"]) == [1, 2, 2] and list(frame["section"]) == [0, 1, 2]
    assert list(frame["tags"]) == ["t,mine", "t", "t"]


def test_the_best_follows_the_goal_of_each_objective(filled: Filled) -> None:
    objectives = (Objective("a", "min"), Objective("b", "max"))
    job = filled.sweep("s", [{}], metric="a", goal="min", objectives=objectives)
    points = [Point(n, 0.0, {"a": value, "b": value}) for n, value in enumerate([2.0, 1.0, 3.0])]
    filled.attempt(job, 0, points).end("done")
    row = hostler.frame(filled.url).iloc[0]
    assert (row["a.best"], row["b.best"]) == (1.0, 3.0)


def test_polars_gets_the_same_columns(filled: Filled) -> None:
    polars = servers.library("polars")
    job = filled.sweep("s", [{"lr": 0.1, "x": 1}, {"lr": 0.2, "x": "one"}])
    filled.done(job, 0, 1.0, 2.0)
    frame = hostler.frame(filled.url, polars=True)
    assert isinstance(frame, polars.DataFrame)
    assert frame["lr"].to_list() == [0.1, 0.2] and frame["x"].to_list() == ["1", "one"]
    assert frame["a.curve"].to_list() == [[1.0, 2.0], []]


def test_searchs_journal_is_not_read_for_packed_runs(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    from hostler.records.sweep.journal import Journal, JournalEntry

    found = space.to_json(space.parse({"lr": {"min": 0.0, "max": 1.0}}, method="tpe"))
    job = Job(name="s", command=("x",), runs=(), search=found, method="tpe")
    assert sweeps.submit(filled.store, job)
    journal = Journal(filled.store, "s")
    for n in range(8):
        assert journal.append(JournalEntry({"lr": n / 8}), None)
    job = sweeps.load(filled.store, "s")
    for index in range(8):
        filled.done(job, index, 1.0)
    packing.compact(filled.store, job)
    seen = read_keys(monkeypatch)
    assert list(hostler.frame(filled.url)["lr"]) == [n / 8 for n in range(8)]
    assert [key for key in seen if "/journal/" in key] == []


def test_columns_need_no_pandas_and_warn_nobody(filled: Filled) -> None:
    filled.done(filled.sweep("s", [{"lr": 1.0}]), 0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert columns(filled.store)["lr"].tolist() == [1.0]


def test_foreign_files_among_log_entries_are_left_alone(filled: Filled) -> None:
    job = filled.sweep("s", [{"lr": 1}, {"lr": 2}])
    filled.done(job, 0, 3.0)
    for prefix in (layout.logs_of("s"), layout.ends("s"), layout.trash("s")):
        for name in (".DS_Store", "junk", "notes.json", f"{job.run_id(0)}-000002.json.bak"):
            filled.store.put(f"{prefix}{name}", b"?")
    assert list(hostler.frame(filled.url)["state"]) == ["done", "queued"]
    assert [row.state for row in rows(filled.store)] == ["done", "queued"]
    assert [one.key.index for one in Queue(filled.store, job).open()] == [1]
    assert Queue(filled.store, job).glance(5) == [1]


def test_unreadable_run_is_reported_once_and_a_plot_shows_others(filled: Filled) -> None:
    job = filled.sweep("s", [{"lr": n} for n in range(4)], metric="a")
    for index in range(4):
        filled.done(job, index, 1.0, metrics={"a": {"last": float(index), "min": 0.0, "max": 3.0, "step": 0}})
    filled.store.put(layout.log_entry("s", job.run_id(2), 2), b'{"kind": "en')
    project.ensure(filled.store, "p", Timing())
    filled.store.put(layout.project(2), b"{")
    said: list[str] = []
    assert len(columns(filled.store, say=said.append)["run"]) == 3
    assert len(said) == len(set(said)) == 2
    with pytest.warns(UserWarning, match="is not a hostler record"):
        assert [run.row.index for run in source(filled.store, "s").ranked] == [3, 1, 0]
    with pytest.raises(DamagedError):
        rows(filled.store)
