"""The table of `hostler status`: golden at 80 columns on a terminal and in a pipe, and its columns."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli_world import SOURCE
from hostler.cli.look.status import attention
from hostler.cli.main import cli
from hostler.cli.terminal import run_columns, screen
from hostler.cli.terminal.run_columns import Column, Times, at_point
from hostler.cli.terminal.table import drawn, left_out, on_screen
from hostler.errors import UsageError
from hostler.records.rows import Row
from hostler.records.series.points import Point
from hostler.records.sweep.summary import Summary
from hostler.spec.ranking import Judged
from pseudo_terminal import on_terminal
from seen_world import Seen

GOLDEN = Path(__file__).parents[2] / "golden"
ROW = Row("0", "g/0", "g", 0, "done", {"lr": 0.1}, {"acc": 0.9}, step=4, seconds=125.0, metric="acc")


def rows(*changes: dict) -> list[Row]:
    return [replace(ROW, id=str(n), name=f"g/{n}", index=n, **change) for n, change in enumerate(changes)]


def heads(found: list[Row], asked: str = "") -> list[str]:
    states = [row.state for row in found]
    return [c.title for c in run_columns.chosen(found, states, [Times(row.seconds) for row in found], asked)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """A grid of which one run failed and one is NaN, on two machines; and a newer sweep of two runs."""
    seen = Seen(tmp_path_factory.mktemp("seen") / "store")
    grid = [
        {"lr": lr, "width": width, "optimizer": optimizer, "epochs": 40}
        for lr in (0.0003, 0.003, 0.1)
        for width in (64, 128)
        for optimizer in ("adamw", "sgd")
    ]
    job = seen.submit("z-grid", grid)
    for n in range(len(grid)):
        seen.claim(job, n)
        good = {"accuracy": 0.9683 - 0.0307 * n, "loss": 0.0016312 * (n + 1), "epoch": 40.0}
        points = [Point(40, 1.79e9, good if n != 7 else {**good, "accuracy": float("nan")})]
        message = "CUDA out of memory" if n == 11 else ""
        host = f"gpu-{n % 2}.cluster.example"
        state = "failed" if message else "done"
        seen.end(job, n, state, () if message else seen.curve(job, n, points), message, host=host)
    os.utime(seen.folder / "sweeps" / "z-grid" / "spec" / "000001.json", (1.7e9, 1.7e9))
    late = seen.submit("b-late", [{"lr": 1e-3}, {"lr": 1e-2}])
    for n in range(2):
        seen.claim(late, n)
        seen.end(late, n, "done", seen.curve(late, n, [Point(7, 1.79e9, {"accuracy": 0.5 + n / 8})]))
    return seen


def typed(store: Seen, *words: str, columns: int | None = None) -> str:
    """What `hostler status` shows, on a terminal of so many columns, or in a pipe."""
    command = [sys.executable, "-m", "hostler", "status", *words, "--store", store.url]
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "NO_COLOR": "1"}
    if columns is None:
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    code, written = on_terminal(command, columns=columns, env=env)
    assert code == 0
    return written.replace("\r", "")


@pytest.mark.parametrize(("name", "columns"), [("status_80.txt", 80), ("status_pipe.txt", None)])
def test_status_matches_the_golden_text(store: Seen, name: str, columns: int | None) -> None:
    shown = typed(store, columns=columns)
    if os.environ.get("HOSTLER_GOLDEN"):
        (GOLDEN / name).write_text(shown)
    assert shown == (GOLDEN / name).read_text()
    assert columns is None or max(map(len, shown.splitlines())) <= columns


def test_heads_are_alike_on_a_terminal_and_a_pipe(store: Seen) -> None:
    heads = [line.split() for line in typed(store).splitlines() if line.startswith("NAME")]
    wide = [line.split() for line in typed(store, columns=200).splitlines() if line.startswith("NAME")]
    assert heads == wide and len(heads) == 2


def test_newest_sweep_is_last_before_what_needs_attention(store: Seen) -> None:
    lines = [line for line in typed(store, columns=200).splitlines() if line]
    assert [line.split(":")[0] for line in lines[-3:-1]] == ["z-grid", "b-late"], "not by name"
    assert lines[-1] == "! needs attention: 1 failed (hostler errors z-grid), 1 with NaN"


def test_parameter_has_a_column_only_if_it_varies() -> None:
    same, other = {"lr": 0.1, "width": 64}, {"lr": 0.2, "width": 64}
    assert heads(rows({"params": same}, {"params": other})) == ["NAME", "STATE", "lr", "acc", "STEP", "TIME"]
    assert "lr" not in heads(rows({"params": same}, {"params": same}))
    assert "width" in heads(rows({"params": same}, {"params": {"lr": 0.1}}))


def test_values_that_look_alike_still_have_their_column() -> None:
    assert "lr" in heads(rows({"params": {"lr": 0.100001}}, {"params": {"lr": 0.100002}}))


def test_epoch_that_is_the_step_has_no_column() -> None:
    assert "epoch" not in heads(rows({"metrics": {"acc": 1.0, "epoch": 4.0}}))
    assert "epoch" in heads(rows({"metrics": {"acc": 1.0, "epoch": 3.0}}))


def test_host_has_a_column_only_if_there_are_several() -> None:
    assert "HOST" not in heads(rows({"host": "a"}, {"host": "a"}))
    assert heads(rows({"host": "a"}, {"host": "b"}))[-1] == "HOST"


@pytest.mark.parametrize(("goal", "best"), [("max", "1"), ("min", "0")])
def test_best_run_is_starred(monkeypatch: pytest.MonkeyPatch, goal: str, best: str) -> None:
    found = rows(
        {"judged": Judged(0.5), "goal": goal},
        {"judged": Judged(0.7), "goal": goal},
        {"judged": Judged(float("nan")), "goal": goal},
        {"judged": Judged(0.1 if goal == "min" else 0.9), "goal": goal, "state": "failed"},
    )
    assert run_columns.best_of(found) == {best}
    monkeypatch.setenv("NO_COLOR", "1")
    starred = [line.split()[0] for line in drawn(found, 80) if run_columns.STAR in line]
    assert starred == [f"g/{best}"]
    assert run_columns.best_of(found[:1]) == set(), "a single run is not the best of anything"


def test_run_set_aside_by_the_pruner_names_its_rung() -> None:
    parked = {"state": "paused", "paused_by": "rung"}
    found = rows({**parked, "rung": 3}, parked, {"state": "paused", "paused_by": "cap"})
    _, parked_at, parked_before, capped = drawn(found, 80)
    assert "\x1b[90mpaused: rung 3\x1b[0m" in parked_at, "in grey"
    assert "paused: rung 4" in parked_before, "of an earlier version: how far it has come"
    assert "\x1b[33mpaused: budget\x1b[0m" in capped


def test_decimal_points_stand_under_each_other() -> None:
    assert at_point(["0.9683", "12.5", "1.63e-3", "", "128", "NaN"]) == [
        "  0.9683 ",
        " 12.5    ",
        "  1.63e-3",
        "",
        "128      ",
        "      NaN",
    ]


def test_sorting_by_a_parameter_puts_the_absent_last() -> None:
    found = rows({"params": {"lr": 0.1}}, {"params": {}}, {"params": {"lr": 1e-4}}, {"params": {"lr": 0.02}})
    times = [Times()] * 4
    assert [row.id for row in run_columns.ordered(found, times, "lr")] == ["2", "3", "0", "1"]
    assert [row.id for row in run_columns.ordered(found, times, "-lr")] == ["0", "3", "2", "1"]
    many = rows(*[{}] * 12)
    assert [row.id for row in run_columns.ordered(many, [Times()] * 12, "-name")][:3] == ["11", "10", "9"]


def test_columns_are_those_that_are_asked_for() -> None:
    found = rows({"params": {"lr": 0.1, "width": 64}}, {"params": {"lr": 0.2, "width": 64}})
    assert heads(found, "time,width,acc") == ["NAME", "TIME", "width", "acc"]
    everything = ["NAME", "STATE", "lr", "width", "acc", "STEP", "TIME", "LEFT", "HOST"]
    assert heads(found, "all") == everything


@pytest.mark.parametrize("words", [["--sort", "lrr"], ["--columns", "width,acuracy"]])
def test_unknown_column_names_the_nearest(store: Seen, words: list[str]) -> None:
    done = CliRunner().invoke(cli, ["status", "z-grid", *words, "--store", store.url])
    assert isinstance(done.exception, UsageError)
    assert "no run has such a column" in done.exception.message
    assert "did you mean" in (done.exception.hint or "")


def test_narrow_terminal_leaves_out_whole_columns_and_names_them() -> None:
    columns = [
        Column("NAME", ("a",), ("a" * 10,)),
        Column("lr", (1,), ("1",), 2.0),
        Column("HOST", ("h",), ("h" * 10,), 7),
    ]
    kept, out = run_columns.fitting(columns, 20)
    assert [column.title for column in kept] == ["NAME", "lr"] and out == ["HOST"]
    assert run_columns.fitting(columns, 5)[1] == ["lr", "HOST"]
    assert run_columns.fitting(columns, 100)[1] == []


def test_columns_left_out_are_all_named_in_lines_that_fit() -> None:
    titles = [f"model.layers.{n}.dropout" for n in range(14)]
    for room in (40, 60, 80, 125):
        lines = left_out(titles, room)
        assert max(map(len, lines)) <= room
        named = " ".join(line.strip() for line in lines)
        assert named == f"left out at {room} columns: {', '.join(titles)} (--columns chooses)"


def test_watched_table_with_many_columns_stays_on_the_screen() -> None:
    wide = [
        replace(ROW, name=f"grid/{n}", id=str(n), params={f"model.layers.{k}.dropout": n for k in range(14)})
        for n in range(30)
    ]
    lines = on_screen(wide, os.terminal_size((80, 24)))
    assert len(lines) == 23 and "model.layers.13.dropout, STEP, TIME" in lines[-1]


def test_long_names_of_runs_keep_their_numbers() -> None:
    found = [replace(ROW, name=f"{'a-long-name-' * 9}/{n}", id=str(n)) for n in (3, 31)]
    lines = drawn(found, 60)
    assert [line.split()[0][-3:] for line in lines[1:3]] == ["-/3", "/31"]
    assert max(len(click.unstyle(line)) for line in lines) <= 60


def test_long_lines_are_broken_at_spaces_and_lose_nothing() -> None:
    line = "  best s/31 accuracy=0.3 (last, step 3) (lr=0.3 width=3)"
    for room in (24, 30, 50):
        shown = screen.wrapped(line, room, "    ")
        assert max(map(len, shown)) <= room and shown[0].startswith("  best")
        assert " ".join(" ".join(shown).split()) == line.strip()
    assert screen.wrapped("x" * 50, 9, "  ") == ["xxxx…xxxx"]


def test_each_sweep_of_several_has_its_own_table() -> None:
    found = [*rows({}, {}), replace(ROW, sweep="one", id="x"), replace(ROW, sweep="two", id="y")]
    assert [[row.sweep for row in block] for block in run_columns.blocks(found)] == [
        ["g", "g"],
        ["one", "two"],
    ]


def test_attention_is_one_line_and_silent_if_all_is_well() -> None:
    well = Summary("g", "grid", 2, {"done": 2})
    assert attention(rows({}, {}), [well], waiting=False) == ""
    bad = replace(well, counts={"failed": 2, "lost": 1, "running": 1}, silent=1, halted="5 alike")
    lost = rows({"state": "running", "stale": True})
    said = attention(lost, [bad], waiting=True)
    assert said == (
        "! needs attention: 2 failed (hostler errors g), 1 lost, 1 without a sign of life, g is halted, "
        "nobody works on what is queued"
    )
