"""`hostler simulate` as it is typed: the table, the comparison, and one clear line for what cannot be."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import servers
from hostler.cli import here
from hostler.cli.main import declared
from hostler.errors import HostlerError

PROJECT = """
name: cifar
command: python train.py
fleets:
  desk: {backend: local, workers: 2}
  lab: {backend: ssh, hosts: [gpu1, gpu2], price: 0.5}
  tau: {backend: slurm, partition: killable, workers: 5, time: 4h, price: 0.2}
  burst: {backend: gce, project: p, zones: [us-central1-a, us-central1-b], machine: g2-standard-8, workers: 4}
  sure: {backend: gce, project: p, zones: [us-central1-a], machine: g2-standard-8, workers: 4, spot: false}
  capped: {backend: gce, project: p, zones: [us-central1-a], machine: g2-standard-8, workers: 4, max_cost: 2}
  pods: {backend: kubernetes, namespace: train, image: "python:3.11", workers: 4, price: 0.3}
  small: {backend: ssh, hosts: [gpu1], price: 1}
"""
GRID = {"name": "grid", "parameters": {"lr": list(range(20))}}

Type = Callable[..., Result]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Type:
    """Types the command in a project; an error is raised, as the program's main would show it."""
    (tmp_path / "hostler.yaml").write_text(PROJECT)
    (tmp_path / "grid.yaml").write_text(json.dumps(GRID))
    monkeypatch.chdir(tmp_path)
    here.project.cache_clear()

    def run(*words: str) -> Result:
        return CliRunner().invoke(declared("simulate"), list(words), standalone_mode=False)

    return run


def results(done: Result) -> dict[str, dict[str, Any]]:
    assert done.exception is None, done.exception
    return {f"{one['fleet']} {one['every']:g}": one for one in json.loads(done.stdout)["results"]}


def refused(done: Result) -> str:
    assert isinstance(done.exception, HostlerError), (done.exception, done.output)
    assert "\n" not in done.exception.message and done.exception.exit_code == 2
    return str(done.exception)


def test_a_fleet_is_simulated_and_the_next_command_is_said(typed: Type, tmp_path: Path) -> None:
    done = typed("grid.yaml", "--on", "burst", "--preempt", "5%/h", "--run-time", "40m", "--seeds", "20")
    assert done.exception is None and done.return_value == 0
    assert "grid: 20 runs; each simulated 20 times" in done.output
    assert done.output.splitlines()[-1] == "  → hostler sweep grid.yaml --on burst"
    assert "assumed: burst takes 1m to 2m 30s until a worker starts (--boot)" in done.output
    assert not (tmp_path / ".hostler").exists()  # nothing was written


def test_fleets_and_intervals_are_compared_and_the_best_is_named(typed: Type) -> None:
    words = ["grid.yaml", "--on", "burst,sure", "--on", "tau", "--preempt", "20%/h", "--run-time", "30m-1h"]
    words += ["--checkpoint", "5m,25m", "--notice", "0", "--seeds", "20"]
    done = typed(*words, "--json")
    found = results(done)
    assert set(found) == {f"{name} {every}" for name in ("burst", "sure", "tau") for every in (300, 1500)}
    assert found["sure 300"]["losses"] == 0 < found["burst 300"]["losses"]
    assert found["burst 300"]["repeated"] < found["burst 1500"]["repeated"]
    assert found["burst 300"]["cost"]["mean"] < found["sure 300"]["cost"]["mean"]
    best = json.loads(done.stdout)["best"]
    assert best["fleet"] == "tau" and best == {
        "fleet": "tau",
        "every": min((300.0, 1500.0), key=lambda n: found[f"tau {n:g}"]["cost"]["mean"]),
    }
    said = typed(*words).output
    assert "cheapest: tau" in said and "hostler sweep grid.yaml --on tau" in said


def test_without_preemption_the_time_is_that_of_the_rounds(typed: Type) -> None:
    one = results(typed("grid.yaml", "--on", "lab", "--run-time", "1h", "--save", "0s", "--json"))["lab 300"]
    assert one["seconds"]["mean"] == pytest.approx(10 * 3600, rel=0.02)
    assert one["cost"]["mean"] == pytest.approx(20 * 0.5, rel=0.02)
    assert one["seconds"]["low"] < 10 * 3600 < one["seconds"]["high"]


def test_checkpoints_made_often_are_assumed_to_be_quick(typed: Type) -> None:
    words = ("grid.yaml", "--on", "lab", "--run-time", "1h", "--seeds", "20", "--checkpoint")
    assert "a checkpoint holds the training up for 100ms (--save)" in typed(*words, "6s").output
    assert "a checkpoint holds the training up for 5s (--save)" in typed(*words, "5m").output
    one = results(typed(*words, "6s", "--json"))["lab 6"]
    assert one["seconds"]["mean"] == pytest.approx(10 * 3600, rel=0.05)


def test_a_cap_is_kept_and_what_it_leaves_is_said(typed: Type) -> None:
    done = typed("grid.yaml", "--on", "capped", "--run-time", "2h", "--seeds", "20")
    assert "time or money runs out before the work is done in 20 of 20" in done.output
    assert "none of them finishes all runs" in done.output and done.return_value == 1
    one = results(typed("grid.yaml", "--on", "capped", "--run-time", "2h", "--seeds", "20", "--json"))[
        "capped 300"
    ]
    assert one["cost"]["high"] <= 2 and one["left"] > 0


def test_pods_and_this_machine_are_simulated_too(typed: Type) -> None:
    words = [
        "grid.yaml",
        "--on",
        "pods,desk,local",
        "--run-time",
        "20m",
        "--preempt",
        "10%/h",
        "--seeds",
        "20",
    ]
    found = results(typed(*words, "--json"))
    assert all(one["finishes"] for one in found.values())
    assert found["desk 300"]["losses"] == found["here 300"]["losses"] == 0 < found["pods 300"]["losses"]
    assert found["desk 300"]["cost"] is None
    said = typed(*words).output
    assert "desk: its cost is unknown" in said and "cheapest: pods" in said


def test_that_jobs_end_before_their_runs_is_said(typed: Type) -> None:
    words = ["grid.yaml", "--on", "tau", "--seeds", "2", "--run-time"]
    assert "tau: a job ends after 4h, and counts as preempted" in typed(*words, "5h").output
    assert "a job ends" not in typed(*words, "4h").output


def test_own_machines_are_preempted_where_their_fleet_is_named(typed: Type) -> None:
    words = ["grid.yaml", "--on", "desk", "--run-time", "2h", "--seeds", "20", "--json"]
    assert results(typed(*words, "--preempt", "desk=20%/h"))["desk 300"]["losses"] > 0


def test_a_plot_is_drawn(typed: Type, tmp_path: Path) -> None:
    servers.library("matplotlib")
    words = ["grid.yaml", "--on", "burst,desk", "--run-time", "40m", "--checkpoint", "5m,15m", "--seeds", "2"]
    assert typed(*words, "--plot", "out.svg").exception is None
    text = (tmp_path / "out.svg").read_text()
    assert "<svg" in text
    assert "a plot is saved as" in refused(typed(*words, "--plot", "out.doc"))


def test_a_trace_is_replayed_over_the_whole_sweep(typed: Type, tmp_path: Path) -> None:
    lines = [{"format": 1, "scale": 1}, {"kind": "loss", "vm": 0, "at": 1000, "gone": 1030, "notice": False}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    words = [
        "grid.yaml",
        "--on",
        "burst",
        "--run-time",
        "40m",
        "--trace",
        "t.jsonl",
        "--seeds",
        "20",
        "--json",
    ]
    one = results(typed(*words))["burst 300"]
    assert one["losses"] == 1 and one["repeated"] > 0


def test_trace_zones_must_be_the_fleets(typed: Type, tmp_path: Path) -> None:
    words = ["grid.yaml", "--on", "burst", "--run-time", "40m", "--trace", "t.jsonl", "--seeds", "2"]
    (tmp_path / "t.jsonl").write_text('{"kind": "stockout", "zone": "*", "begins": 0}\n')
    assert "never begins" in typed(*words).output
    lines = [{"kind": "stockout", "zone": "x-y1-z", "begins": 0}, {"kind": "loss", "vm": 99, "at": 1}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = typed(*words).output
    assert (
        "a stockout of x-y1-z, which no simulated fleet uses" in said and "takes VM 99 away, but no" in said
    )


LEARNS = {"name": "grid", "method": "tpe", "metric": {"name": "loss", "goal": "min"}}
LEARNS |= {"parameters": {"lr": {"min": 0.1, "max": 1.0}}}


def test_learning_search_is_as_long_as_its_budget(typed: Type, tmp_path: Path) -> None:
    servers.library("optuna")
    (tmp_path / "grid.yaml").write_text(json.dumps({**LEARNS, "budget": {"runs": 12}}))
    one = results(typed("grid.yaml", "--on", "lab", "--run-time", "10m", "--json"))["lab 300"]
    assert one["done"] == 12
    (tmp_path / "grid.yaml").write_text(json.dumps({**LEARNS, "budget": {"hours": 12}}))
    said = refused(typed("grid.yaml", "--on", "lab", "--run-time", "10m"))
    assert "its number of runs is unknown" in said and "budget: {runs: 200}" in said


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["--preempt", "100%/h"], "no run would ever end", "50%/10m"),
        (["--preempt", "1.5/h"], "no run would ever end", "below 100 %"),
        (["--preempt", "-1%/h"], "below zero", "5%/h"),
        (["--preempt", "5%/lightyear"], "is not a rate", "5%/h"),
        (["--preempt", "other=5%/h"], "'other' is not a simulated fleet", "burst"),
        (["--history"], "less than an hour", "--preempt"),
        (["--checkpoint", "2h"], "would never be made", "shorter --checkpoint"),
        (["--checkpoint", "0"], "is not an interval", "5m,15m,1h"),
        (["--run-time", "soon"], "not a time", "40m"),
        (["--run-time", "0s"], "must be above 0", "--run-time"),
        (["--run-time", ""], "not a time", "40m"),
        (["--stockout", "sometimes"], "not a zone with a time, nor a rate", "10%/d:2h"),
        (["--stockout", "100%/d:2h"], "nor a rate below 100 %", "10%/d:2h"),
        (
            ["--stockout", "us-central1-q@1h-3h"],
            "no simulated fleet uses zone us-central1-q",
            "us-central1-b",
        ),
        (["--boot", "5h"], "is given up when no VM reports in 15m", "HOSTLER_REPORT"),
        (["--plot", "x.xyz"], "x.xyz: a plot is saved as", "--plot x.png"),
        (["--preempt", "5%/h", "--history"], "cannot be combined", ""),
        (["--trace", "t", "--preempt", "5%/h"], "--trace cannot be combined", ""),
        (["--notice", ""], "not a time", "--notice"),
        (["--save", ""], "not a time", "--save"),
        (["--trace", "nowhere"], "No such file", "docs/simulate.md"),
        (["--like", "other"], "--like other: none of its runs has ended in this store", "hostler status"),
    ],
)
def test_what_cannot_be_is_one_clear_line(typed: Type, words: list[str], said: str, hint: str) -> None:
    given = [] if "--run-time" in words or "--like" in words else ["--run-time", "40m"]
    found = refused(typed("grid.yaml", "--on", "burst", *given, *words))
    assert said in found and hint in found


def test_missing_run_time_is_refused_with_a_hint(typed: Type) -> None:
    assert "--run-time 40m" in refused(typed("grid.yaml", "--on", "burst"))


def test_run_larger_than_the_fleet_is_refused(typed: Type, tmp_path: Path) -> None:
    (tmp_path / "hostler.yaml").write_text(f"{PROJECT}\nresources: {{nodes: 3}}\n")
    here.project.cache_clear()
    assert "takes 3 workers at once" in refused(typed("grid.yaml", "--on", "small", "--run-time", "40m"))


def test_a_budget_without_a_price_is_refused(typed: Type, tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(json.dumps({**GRID, "budget": {"cost": 5}}))
    (tmp_path / "hostler.yaml").write_text(PROJECT.replace(", price: 0.5", ""))
    here.project.cache_clear()
    assert "the price of lab is not known" in refused(typed("grid.yaml", "--on", "lab", "--run-time", "40m"))


def test_refused_fleet_among_several_is_left_out(typed: Type, tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(json.dumps({**GRID, "budget": {"cost": 100}}))
    (tmp_path / "hostler.yaml").write_text(PROJECT.replace(", price: 0.5", ""))
    here.project.cache_clear()
    done = typed("grid.yaml", "--on", "lab,tau", "--run-time", "10m", "--seeds", "2")
    assert done.exception is None and "lab is left out: " in done.output and "--on tau" in done.output


def test_assumed_preemption_notice_is_stated(typed: Type) -> None:
    words = ["grid.yaml", "--on", "burst", "--run-time", "40m", "--preempt", "5%/h", "--seeds", "2"]
    assert "assumed: burst gets 30s of notice before a preemption" in typed(*words).output
    assert "told" not in typed(*words, "--notice", "0").output


def test_a_rate_at_which_nothing_ends_is_said(typed: Type) -> None:
    done = typed("grid.yaml", "--on", "burst", "--run-time", "40m", "--preempt", "99.9%/5s")
    assert "the sweep never ends" in done.output and "none of them finishes" in done.output
    assert done.return_value == 1 and "e+03" not in done.output


def test_fleet_without_machines_shows_no_time_or_cost(typed: Type) -> None:
    words = ["grid.yaml", "--run-time", "40m", "--stockout", "*@0-1000d", "--seeds", "3"]
    done = typed(*words, "--on", "burst")
    assert done.return_value == 1 and "none of them finishes all runs" in done.output
    row = next(line for line in done.output.splitlines() if line.startswith("  burst  "))
    assert row.split() == ["burst", "5m", "never", "begins", "-", "0", "0", "0", "of", "20"]
    assert "the launch never starts: no VM came within 600 s" in done.output
    assert typed(*words, "--on", "burst", "--json").return_value == 1
    other = typed(*words, "--on", "burst,tau")
    assert other.return_value == 0 and "cheapest: tau" in other.output
    assert "tau has no zones: --stockout does not affect it" in other.output


def test_the_example_of_the_documentation_prints_what_it_says(typed: Type, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/simulate.md").read_text()
    project, grid = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "hostler.yaml").write_text(project)
    (tmp_path / "grid.yaml").write_text(grid)
    here.project.cache_clear()
    shown = re.findall(r"```\n\$ hostler simulate (.*?)\n(.*?)```", page, re.DOTALL)
    assert len(shown) == 1
    for words, output in shown:
        done = typed(*shlex.split(words))
        assert done.return_value == 0 and done.output == output
