from __future__ import annotations

import csv
import math
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from runs import Filled

import hostler
import servers
from hostler import settings
from hostler.analysis import filters
from hostler.analysis.frame import is_low_best
from hostler.analysis.tables import pandas_frame
from hostler.cli.main import cli
from hostler.errors import MissingError, StoreError, UsageError
from hostler.records.launch import costs, launches
from hostler.records.launch.launches import Generation
from hostler.records.project import ensure
from hostler.records.rows import rows
from hostler.records.run import heartbeats
from hostler.records.series.metrics import Origin
from hostler.records.series.points import Point
from hostler.store import open_store
from hostler.store.folder import FolderStore
from hostler.sweeping import Sweep

servers.library("pandas")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def filled(tmp_path: Any) -> Filled:
    return Filled(str(tmp_path / "store"))


def test_one_row_per_run_with_parameters_state_last_and_best(filled: Filled) -> None:
    job = filled.sweep("s", [{"lr": 0.1, "model": {"width": 3}}, {"lr": 0.2}], metric="acc", tags=("t",))
    points = [Point(n, 100.0 + n, {"acc": value, "loss": -value}) for n, value in enumerate([1.0, 3.0, 2.0])]
    filled.attempt(job, 0, points).end("done", attempts=1, seconds=5.0, total=5.0, host="h", step=2)
    frame = hostler.frame(filled.url)
    assert list(frame["state"]) == ["done", "queued"]
    first = frame.iloc[0]
    assert (first["lr"], first["model.width"], first["tags"], first["seconds"]) == (0.1, 3, "t", 5.0)
    assert (first["acc"], first["acc.best"], first["loss"], first["loss.best"]) == (2.0, 3.0, -2.0, -3.0)
    assert math.isnan(frame["acc"][1])


def test_cost_of_a_run_is_there_during_it_and_afterwards(filled: Filled) -> None:
    ensure(filled.store, "p", settings.timing())
    job = filled.sweep("s", [{"lr": 1}, {"lr": 2}, {"lr": 3}])
    filled.done(job, 0, 1.0, cost=0.25)
    filled.attempt(job, 1, [])
    runs = {job.run_id(1): {"attempt": 1, "step": 3, "cost": 0.5}}
    heartbeats.beat(filled.store, "s", 1, {"host": "h", "pid": 1, "runs": runs})
    cost = list(hostler.frame(filled.url)["cost"])
    assert cost[:2] == [0.25, 0.5] and math.isnan(cost[2])


def test_curves_are_long_and_hold_every_point(filled: Filled) -> None:
    job = filled.sweep("s", [{}])
    filled.attempt(job, 0, [Point(0, 1.5, {"a": math.nan, "b": math.inf}), Point(1, 2.5, {"a": 2.0})])
    curves = hostler.curves(filled.url)
    assert list(curves.columns) == ["run", "metric", "step", "value", "time"]
    assert [(m, s, t) for m, s, t in zip(curves.metric, curves.step, curves.time, strict=True)] == [
        ("a", 0, 1.5),
        ("a", 1, 2.5),
        ("b", 0, 1.5),
    ]
    assert math.isnan(curves.value[0]) and curves.value[2] == math.inf
    assert len(hostler.curves(filled.url, metric="b")) == 1
    assert len(hostler.curves(filled.url, metric=["a", "b"])) == 3


def test_points_a_lost_attempt_logged_past_its_checkpoint_are_hidden(filled: Filled) -> None:
    job = filled.sweep("s", [{}])
    filled.attempt(job, 0, [Point(n, 0.0, {"a": n}) for n in range(10)])
    filled.attempt(job, 0, [Point(n, 1.0, {"a": 100 + n}) for n in range(4, 6)], origin=Origin(1, 4, 4))
    curves = hostler.curves(filled.url)
    assert list(curves.value) == [0, 1, 2, 3, 104, 105]
    assert hostler.frame(filled.url)["a"][0] == 105


def test_sweeps_runs_and_states_are_chosen_by_name(filled: Filled) -> None:
    one, two = filled.sweep("one", [{}, {}]), filled.sweep("two", [{}])
    filled.attempt(one, 0, [Point(0, 0.0, {"a": 1})]).end("done")
    filled.attempt(two, 0, [Point(0, 0.0, {"a": 2})])
    assert len(hostler.frame(filled.url, "one")) == 2
    assert len(hostler.frame(filled.url, ["one", "two"])) == 3
    assert list(hostler.frame(filled.url, state="done")["sweep"]) == ["one"]
    assert set(hostler.curves(filled.url, run=two.run_id(0))["value"]) == {2.0}
    assert set(hostler.curves(filled.url, run="two")["value"]) == {2.0}
    with pytest.raises(MissingError, match="no sweep named 'three'"):
        hostler.frame(filled.url, "three")


def test_a_parameter_called_like_another_column_keeps_both(filled: Filled) -> None:
    job = filled.sweep("s", [{"state": "x", "loss": "mse"}])
    filled.attempt(job, 0, [Point(0, 0.0, {"loss": 1})])
    row = hostler.frame(filled.url).iloc[0]
    assert (row["param.state"], row["param.loss"], row["loss"]) == ("x", "mse", 1.0)


def test_a_metric_called_like_a_fact_keeps_both(filled: Filled) -> None:
    job = filled.sweep("s", [{"seconds": 9}])
    filled.attempt(job, 0, [Point(0, 0.0, {"state": 1, "seconds": 2})]).end("done")
    row = hostler.frame(filled.url).iloc[0]
    assert (row["state"], row["metric.state"], row["metric.state.best"]) == ("done", 1.0, 1.0)
    assert (row["metric.seconds"], row["param.seconds"]) == (2.0, 9)


def test_metric_named_like_the_best_of_another_keeps_both_columns(filled: Filled) -> None:
    job = filled.sweep("s", [{"state": "x", "param.state": "y"}])
    points = [Point(n, 0.0, {"acc.best": 7.0 + n, "acc": 1.0 - n}) for n in range(2)]
    filled.attempt(job, 0, points).end("done")
    row = hostler.frame(filled.url).iloc[0]
    assert (row["acc"], row["acc.best"]) == (0.0, 1.0)
    assert (row["metric.acc.best"], list(row["metric.acc.best.curve"])) == (8.0, [7.0, 8.0])
    assert {row["param.state"], row["param.param.state"]} == {"x", "y"}


@pytest.mark.parametrize(
    "cells",
    [
        ["a", "bc", ""], ["ä", "日本", "x"], ["same"] * 3, ["ü"] * 3, [""] * 3, ["a", None, "b"],
        ["a", math.nan], [math.nan] * 3, [math.nan, 1.0], [math.nan, "a"], [1, 2], [1, True], ["a", 1],
        [["a"], ["b"]], [2**70, 1], [],
        [True, False],
    ],
)  # fmt: skip
def test_column_becomes_what_pandas_makes_of_it(cells: list[Any]) -> None:
    import pandas

    pandas.testing.assert_frame_equal(pandas_frame({"c": cells}), pandas.DataFrame({"c": cells}))


def test_string_that_is_no_text_is_kept_in_a_frame() -> None:
    assert list(pandas_frame({"c": ["a", "\ud800"]})["c"]) == ["a", "\ud800"]


def test_metrics_logged_together_share_steps_and_others_do_not(filled: Filled) -> None:
    job = filled.sweep("s", [{"lr": 0.1}, {"lr": 0.2}])
    filled.attempt(job, 0, [Point(n, 1.0, {"a": 1.0, "b": 2.0}) for n in range(3)]).end("done", attempts=1)
    points = [Point(n, 1.0, {"a": 1.0, **({"b": 2.0} if n else {})}) for n in range(3)]
    filled.attempt(job, 1, points).end("done", attempts=1)
    frame = hostler.frame(filled.url)
    assert [list(steps) for steps in frame["a.steps"]] == [[0, 1, 2], [0, 1, 2]]
    assert [list(steps) for steps in frame["b.steps"]] == [[0, 1, 2], [1, 2]]


def test_a_folder_may_be_given_as_a_path(filled: Filled) -> None:
    filled.attempt(filled.sweep("s", [{}]), 0, [Point(0, 0.0, {"a": 1})])
    assert len(hostler.frame(Path(filled.url))) == len(hostler.curves(Path(filled.url))) == 1


@pytest.mark.parametrize("read", [hostler.frame, hostler.curves])
def test_missing_store_is_an_error_that_says_so(read: Any, tmp_path: Path) -> None:
    for url in (str(tmp_path / "typo"), f"memory:{tmp_path.name}-none"):
        with pytest.raises(MissingError, match="is not a hostler store"):
            read(url)
    assert not (tmp_path / "typo").exists()


def test_an_empty_store_is_an_empty_frame(filled: Filled) -> None:
    ensure(open_store(filled.url), "p", settings.timing())
    assert len(hostler.frame(filled.url)) == 0 and len(hostler.curves(filled.url)) == 0
    assert "state" in hostler.frame(filled.url).columns


@pytest.mark.parametrize(
    ("name", "metric", "goal", "low"),
    [
        ("acc", None, "max", False),
        ("val/loss", None, "max", True),
        ("test_error", None, "max", True),
        ("lossless", None, "max", False),
        ("loss", "loss", "max", False),
        ("score", "score", "min", True),
    ],
)
def test_less_is_better_where_the_sweep_or_the_name_says(
    name: str, metric: str | None, goal: str, low: bool
) -> None:
    assert is_low_best(name, metric, goal) is low


def test_projects_own_store_is_read_if_none_is_named(
    filled: Filled, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    filled.sweep("s", [{}])
    monkeypatch.setenv("HOSTLER_STORE", filled.url)
    assert len(hostler.frame()) == 1
    monkeypatch.delenv("HOSTLER_STORE")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hostler.yaml").write_text(f"name: x\nstore: {filled.url}\n")
    assert len(hostler.frame()) == 1


def test_read_only_store_shows_running_runs_and_their_cost(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure(filled.store, "p", settings.timing())
    job = filled.sweep("s", [{"lr": 1}])
    filled.attempt(job, 0, [Point(0, 1.0, {"a": 3.0})])
    heartbeats.beat(filled.store, "s", 1, {"host": "h", "pid": 1, "runs": {job.run_id(0): {"cost": 0.5}}})
    launches.begin(filled.store, Generation("f", 1, "l", workers=1, price=3.6, began=1.0, sweeps=("s",)))

    def refuse(self: FolderStore, key: str, *rest: object, **more: object) -> None:
        raise StoreError(f"{key}: permission denied")

    monkeypatch.setattr(FolderStore, "put", refuse)
    frame = hostler.frame(filled.url)
    assert (frame["state"][0], frame["a"][0], frame["cost"][0]) == ("running", 3.0, 0.5)
    assert [one.generation.name for one in costs.spends(filled.store, settings.timing())] == ["f/1"]
    assert not rows(filled.store)[0].stale


STARTED = datetime(2026, 11, 16, 10, 30, 0, 250000, tzinfo=timezone.utc)


def timed(filled: Filled) -> None:
    """Two runs that have started a day apart, with a metric of the machine, and one that waits."""
    job = filled.sweep("s", [{"lr": 1}, {"lr": 2}, {"lr": 3}])
    for index in range(2):
        points = [Point(1, 100.0, {"loss": 1.0, "system/cpu": 0.5})]
        at = (STARTED + timedelta(days=index)).timestamp()
        filled.attempt(job, index, points).end("done", started=at, seconds=5.0)


def test_times_of_a_frame_are_datetimes_in_utc(filled: Filled) -> None:
    timed(filled)
    frame = hostler.frame(filled.url)
    assert str(frame["started"].dtype) == "datetime64[us, UTC]" == str(frame["ended"].dtype)
    assert frame["started"][0] == STARTED and frame["started"].isna().tolist() == [False, False, True]
    assert (frame["started"][1] - frame["started"][0]) == timedelta(days=1)


def test_times_of_a_polars_frame_are_datetimes_in_utc(filled: Filled) -> None:
    polars = servers.library("polars")
    timed(filled)
    frame = hostler.frame(filled.url, polars=True)
    assert frame["started"].dtype == polars.Datetime("us", "UTC")
    assert frame["started"].to_list() == [STARTED, STARTED + timedelta(days=1), None]


@pytest.mark.parametrize(
    "condition",
    [
        slice(None, STARTED + timedelta(hours=1)),
        slice(None, datetime(2026, 11, 17)),
        slice("2026-11-16", "2026-11-17T00:00:00Z"),
        slice(None, STARTED.timestamp() + 1),
        STARTED,
        [STARTED.isoformat()],
        re.compile("11-16 10:30"),
        lambda at: at is not None and at.day == 16,
        hostler.isnt([None, STARTED + timedelta(days=1)]),
    ],
)
def test_conditions_on_times_choose_rows(filled: Filled, condition: Any) -> None:
    timed(filled)
    assert hostler.frame(filled.url, where={"started": condition})["index"].tolist() == [0]


def test_condition_that_is_not_a_time_is_said(filled: Filled) -> None:
    timed(filled)
    with pytest.raises(UsageError, match="'yesterday' is not a time"):
        hostler.frame(filled.url, where={"started": "yesterday"})


@pytest.mark.parametrize("word", ["started=2026-11-16..2026-11-17", "started=..1.79e9", "started~11-16"])
def test_conditions_on_times_are_typed_as_dates(filled: Filled, word: str) -> None:
    timed(filled)
    where = filters.parse_all([word])
    assert hostler.frame(filled.url, where=where)["index"].tolist() == ([0] if "1.79" not in word else [])


def test_metrics_of_the_machine_are_there_when_asked(filled: Filled) -> None:
    timed(filled)
    plain = [name for name in hostler.frame(filled.url) if name.startswith("system/")]
    whole = [name for name in hostler.frame(filled.url, system=True) if name.startswith("system/")]
    assert plain == []
    assert whole == ["system/cpu", "system/cpu.best", "system/cpu.steps", "system/cpu.curve"]
    assert "system/cpu.curve" in hostler.frame(filled.url, curves=["system/cpu"])
    assert hostler.frame(filled.url, where={"system/cpu": slice(0.1, 1)})["index"].tolist() == [0, 1]
    of_sweep = Sweep("s", filled.url)
    assert "system/cpu" in of_sweep.frame(system=True) and "system/cpu" not in of_sweep.frame()


def test_df_writes_datetimes_and_system_metrics_only_when_asked(filled: Filled, tmp_path: Path) -> None:
    timed(filled)
    parquet = servers.library("pyarrow.parquet")
    files = [str(tmp_path / name) for name in ("a.csv", "a.parquet")]
    words = ["df", "--store", filled.url, "--csv", files[0], "--parquet", files[1]]
    assert CliRunner().invoke(cli, words).exit_code == 0
    [first, *_] = csv.DictReader(Path(files[0]).read_text().splitlines())
    assert datetime.fromisoformat(first["started"]) == STARTED and "system/cpu" not in first
    assert parquet.read_table(files[1])["started"].to_pylist() == [STARTED, STARTED + timedelta(days=1), None]
    CliRunner().invoke(cli, [*words, "--system"])
    [first, *_] = csv.DictReader(Path(files[0]).read_text().splitlines())
    assert first["system/cpu"] == "0.5"
