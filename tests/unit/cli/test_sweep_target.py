"""`hostler sweep --by --under`: the choice that is shown, and wishes that cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hostler.backends.project_file import load_project
from hostler.cli.run import targeted
from hostler.cli.run import wish as wishes
from hostler.errors import UsageError
from hostler.records.sweep import measured_rates, sweeps, target
from hostler.records.sweep.measured_rates import MeasuredRate
from hostler.spec.job import Budget, Job, Resources
from hostler.store import open_store
from seen_world import Seen
from typed_world import Type, typed

__all__ = ["typed"]

NOW = datetime(2026, 11, 18, 14, 30).astimezone()


@pytest.fixture(autouse=True)
def project(typed: Type, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    fleets = {
        "slow": {"backend": "local", "workers": 16, "price": 1.0, "slots": 1},
        "fast": {"backend": "local", "workers": 16, "price": 3.0, "slots": 1},
    }
    (tmp_path / "hostler.yaml").write_text(
        json.dumps({"name": "p", "command": "python train.py", "fleets": fleets})
    )
    (tmp_path / "grid.yaml").write_text(json.dumps({"name": "grid", "parameters": {"lr": list(range(32))}}))


def scouted(folder: Path) -> None:
    """A run takes an hour on one fleet, and half of that on the other, which costs three times as much."""
    store = open_store(str(folder / ".hostler"))
    for name, price, rate in (("slow", 1.0, 1.0), ("fast", 3.0, 2.0)):
        measured_rates.write(store, "grid", MeasuredRate(name, rate, steps=3600, price=price))


def test_cheaper_fleet_is_taken_where_there_is_time(typed: Type, tmp_path: Path) -> None:
    scouted(tmp_path)
    shown = typed("sweep", "grid.yaml", "-n", "--by", "12h", "--on", "slow,fast").out
    assert "of slow" in shown and "for 32" in shown, shown


def test_faster_fleet_is_taken_where_there_is_none(typed: Type, tmp_path: Path) -> None:
    scouted(tmp_path)
    shown = typed("sweep", "grid.yaml", "-n", "--by", "100m", "--on", "slow,fast").out
    assert "of fast" in shown and "for 48" in shown, shown


def test_fleet_that_cannot_be_looked_at_is_said_once(typed: Type, tmp_path: Path) -> None:
    fleets = {
        "slow": {"backend": "local", "workers": 16, "price": 1.0, "slots": 1},
        "odd": {"backend": "gce", "project": "p", "zones": "us", "gpu": ["L4:3"], "workers": 4},
    }
    given = {"name": "p", "command": "python train.py", "fleets": fleets}
    (tmp_path / "hostler.yaml").write_text(json.dumps(given))
    scouted(tmp_path)
    done = typed("sweep", "grid.yaml", "-n", "--by", "12h", "--run-time", "1h")
    shown = done.out
    assert "of slow" in shown, done
    assert shown.count("odd is left out: ") == 1, shown
    assert "slow is left out" not in shown


def test_wish_that_cannot_be_names_two_that_can(typed: Type, tmp_path: Path) -> None:
    scouted(tmp_path)
    done = typed("sweep", "grid.yaml", "-y", "--by", "100m", "--under", "40", "--on", "slow,fast")
    assert done.code == 2 and "grid cannot be done by" in done.err, done
    assert "in time for 5" in done.err and "of fast; for 3" in done.err and "of slow" in done.err
    assert "no sweep" in typed("status", "grid").err  # nothing was submitted


def test_money_below_an_hour_of_a_worker_is_said(typed: Type, tmp_path: Path) -> None:
    scouted(tmp_path)
    done = typed("sweep", "grid.yaml", "-y", "--by", "12h", "--under", "0.5", "--on", "slow,fast")
    assert done.code == 2 and len(done.err.strip().splitlines()) == 2, done.err
    assert "0.5" in done.err


def test_cost_that_is_not_known_is_never_nothing(typed: Type, tmp_path: Path) -> None:
    fleets = {
        "free": {"backend": "local", "workers": 16, "slots": 1},
        "fast": {"backend": "local", "workers": 16, "price": 3.0, "slots": 1},
    }
    given = {"name": "p", "command": "python train.py", "fleets": fleets}
    (tmp_path / "hostler.yaml").write_text(json.dumps(given))
    words = ("sweep", "grid.yaml", "-n", "--by", "12h", "--run-time", "1h", "--on")
    both = typed(*words, "free,fast").out
    assert "of fast" in both and "free is not considered: its cost is not known" in both, both
    alone = typed(*words, "free").out
    assert "of free" in alone and "its cost is not known" in alone and "0.00" not in alone, alone
    bound = typed(*words, "free", "--under", "50")
    assert bound.code == 2 and "the cost of free is not known" in bound.err, bound


@pytest.mark.parametrize(
    ("fleet", "said"),
    [
        ({"backend": "ssh", "hosts": ["one", "two", "three", "four"], "workers": 2}, "8 workers of lab"),
        ({"backend": "slurm", "workers": 6}, " of lab"),
    ],
    ids=["ssh", "slurm"],
)
def test_fleets_that_count_in_another_way_are_sized(
    typed: Type, tmp_path: Path, fleet: dict[str, object], said: str
) -> None:
    given = {"name": "p", "command": "python train.py", "resources": {"nodes": 2}}
    fleets = {"lab": {**fleet, "price": 1.0, "slots": 1}}
    (tmp_path / "hostler.yaml").write_text(json.dumps({**given, "fleets": fleets}))
    store = open_store(str(tmp_path / ".hostler"))
    job = Job("grid", ("python", "train.py"), resources=Resources(nodes=2))
    wish = wishes.sweep_target("4d", None, run_time="1h")
    project = load_project(tmp_path / "hostler.yaml")
    assert wish is not None
    found = targeted.targeted(store, project, store.url, "lab", job, 12, wish, apart=False)
    assert said in found.lines[0] and found.target.workers >= 1, found.lines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--by", "2020-01-01 09:00"), "ago"),
        (("--by", "soon"), "is not a moment"),
        (("--by", "9999-12-31 23:59 -12:00"), "is not a moment"),
        (("--by", "0001-01-01 00:00 +14:00"), "is not a moment"),
        (("--under", "0"), "must be above 0"),
        (("--under", "inf"), "must be above 0"),
        (("--under", "nan"), "must be above 0"),
        (("--by", "6h", "--no-start"), "cannot be combined"),
        (("--preempt", "5%/h"), "are for --by"),
        (("--by", "6h"), "hostler scout"),
    ],
)
def test_bad_wish_is_one_line_and_nothing_is_submitted(
    typed: Type, words: tuple[str, ...], said: str
) -> None:
    done = typed("sweep", "grid.yaml", "-y", "--on", "slow", *words)
    assert done.code == 2 and said in done.err, done
    assert len(done.err.strip().splitlines()) <= 2


def test_wish_without_an_open_run_is_refused(typed: Type, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(json.dumps({"name": "one", "parameters": {"lr": [1]}}))
    assert typed("sweep", "one.yaml", "-y", "--no-start").code == 0
    seen = Seen(tmp_path / ".hostler")
    job = sweeps.load(seen.store, "one")
    seen.claim(job, 0)
    seen.end(job, 0)
    done = typed("sweep", "one.yaml", "-y", "-r", "--by", "6h", "--on", "slow")
    assert done.code == 2 and "no open run" in done.err, done


def test_file_without_under_keeps_the_money_of_the_one_before(typed: Type, tmp_path: Path) -> None:
    assert typed("sweep", "grid.yaml", "-y", "--no-start").code == 0
    store = open_store(str(tmp_path / ".hostler"))
    job, version = sweeps.load_version(store, "grid")
    capped = replace(job, budget=replace(job.budget, cost=50.0))
    assert sweeps.submit(store, capped, version + 1)
    target.write(store, "grid", target.Target(1.0, under=50.0))
    done = typed("sweep", "grid.yaml", "-y", "--no-start")
    assert done.code == 0 and "grid keeps the 50" in done.err, done
    assert sweeps.load(store, "grid").budget.cost == 50.0


def test_money_of_a_wish_is_the_budget_of_its_sweep() -> None:
    job = Job("grid", ("python",), budget=Budget(cost=20.0))
    for under, cost in ((50.0, 20.0), (5.0, 5.0), (None, 20.0)):
        wish = wishes.sweep_target("6h", under, now=NOW)
        assert wish is not None and wishes.capped(job, wish).budget.cost == cost


def test_deadline_a_minute_ago_has_passed() -> None:
    past = (NOW - timedelta(minutes=1)).strftime("today %H:%M")
    with pytest.raises(UsageError, match="1m ago"):
        wishes.sweep_target(past, None, now=NOW)


def test_moment_of_another_zone_is_shown_by_this_clock() -> None:
    wish = wishes.sweep_target("2026-11-18 20:00 UTC", None, now=NOW.astimezone(timezone(timedelta(hours=2))))
    assert wish is not None and wish.words == "by Wed 22:00"


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("6h", "by Wed 20:30"),
        ("5d", "by Mon 14:30"),
        ("7d", "by Wed 25 Nov 14:30"),  # as today: which Wednesday?
        ("90d", "by Tue 16 Feb 2027 14:30"),
    ],
)
def test_moment_beyond_the_week_has_its_date(by: str, words: str) -> None:
    wish = wishes.sweep_target(by, None, now=NOW)
    assert wish is not None and wish.words == words
