from __future__ import annotations

import math
from dataclasses import replace

from hostler.cli.terminal.hints import nobody
from hostler.cli.terminal.output import counts, nan_line, params_text
from hostler.cli.terminal.screen import columns
from hostler.cli.terminal.table import eta, spent, state_text
from hostler.records.rows import Row
from hostler.records.run import heartbeats
from hostler.store.memory import MemoryStore

ROW = Row("i", "n", "s", 0, "running", {"epochs": 10}, step=4, started=100.0)


def test_time_left_is_shown_where_steps_are_known() -> None:
    assert eta(ROW, 140.0) == 60.0
    assert eta(replace(ROW, params={"steps": 4}), 140.0) is None
    assert eta(replace(ROW, params={"steps": "many"}), 140.0) is None
    assert eta(replace(ROW, params={"epochs": True}), 140.0) is None
    assert eta(replace(ROW, step=None), 140.0) is None
    assert eta(replace(ROW, stale=True), 140.0) is None
    assert eta(replace(ROW, state="done"), 140.0) is None


def test_parameters_read_as_in_a_file() -> None:
    row = replace(ROW, params={"init": {"best-of": "spec", "file": "w.pt"}, "sizes": [64, 1.5], "fast": True})
    assert params_text(row) == "init={best-of: spec, file: w.pt} sizes=[64, 1.5] fast=true"


def test_run_whose_holder_is_silent_is_not_counted_as_running() -> None:
    silent = replace(ROW, stale=True)
    assert counts([ROW, silent, ROW]) == "2 running, 1 lost?"


def test_the_state_says_what_a_person_wants_to_know() -> None:
    assert state_text(ROW) == "running"
    assert state_text(replace(ROW, together=1)) == "running, trained together with 1 other"
    assert state_text(replace(ROW, stale=True, beat_age=61.0)) == "lost? 1m 01s"
    assert state_text(replace(ROW, stop="person")) == "stopping"
    assert state_text(replace(ROW, stop="pause")) == "pausing"
    assert state_text(replace(ROW, state="failed", failure={"kind": "memory"})) == "failed: memory"
    assert state_text(replace(ROW, state="done", why="early stopping")) == "done: early stopping"


def test_time_adds_up_all_attempts_while_a_run_runs() -> None:
    assert spent(ROW, 140.0) == 40.0
    assert spent(replace(ROW, earlier=7.0, began=130.0), 140.0) == 17.0


def test_line_names_runs_whose_metric_is_nan() -> None:
    row = replace(ROW, metric="acc", metrics={"acc": math.nan, "loss": 1.0})
    assert nan_line([replace(row, metrics={"acc": 1.0}), row]) == "acc is NaN in n"
    assert nan_line([row], "loss") == "" == nan_line([ROW])
    assert nan_line([row] * 7) == "acc is NaN in n, n, n, n, n and 2 more"


def test_the_hint_counts_only_what_nobody_serves() -> None:
    store = MemoryStore()
    queued = replace(ROW, state="queued")
    waiting = [queued, replace(queued, sweep="t"), replace(ROW, state="done"), replace(ROW, stale=True)]
    assert nobody(store, [ROW, replace(ROW, state="done")]) == ""
    assert nobody(store, waiting).startswith("nobody works on 3 queued or lost runs: hostler worker ")
    heartbeats.beat(store, "w", 1, {"only": ["s"]})
    assert nobody(store, waiting).startswith("nobody works on 1 queued run: ")


def test_script_by_hand_gets_no_worker_hint() -> None:
    lost = replace(ROW, stale=True, by_hand=True)
    assert (
        nobody(MemoryStore(), [lost]) == "1 of scripts started by hand: each goes on when it is started again"
    )


def test_columns_line_up() -> None:
    assert columns([("a", "bb"), ("ccc", "")], indent="") == ["a    bb", "ccc"]
    assert columns([]) == []
