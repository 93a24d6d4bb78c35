"""`hostler scout`: fleets that cannot be tried, and the name of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hostler.backends.gce.backend import GceBackend
from hostler.backends.project_file import load_project
from hostler.cli.run import scout
from hostler.cli.run.fleet_pick import chosen_launcher
from hostler.errors import HostError, MissingError
from hostler.fleet.fleet_choice import of_launch, on_name
from hostler.fleet.launcher import Launcher, sweep_launcher
from hostler.fleet.scouting import ScoutCandidate
from hostler.records.sweep import measured_rates
from hostler.records.sweep.measured_rates import MeasuredRate, Speed
from hostler.settings import Timing
from hostler.simulate.study import StudyOptions
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.project import Project
from hostler.store import open_store
from typed_world import Type, typed

__all__ = ["typed"]

JOB = Job("grid", ("python", "train.py"))
WISH = """
  cheap: {backend: gce, project: p, zones: us, gpu: [T4:1, L4:1, A100:1]}
  one: {backend: gce, project: p, zones: [us-central1-a], machine: g2-standard-8}
"""
PROJECT = "name: p\ncommand: python train.py\nfleets: {lab: {backend: local, price: 3}}\n"


def test_dead_candidate_has_its_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hostler.yaml").write_text(PROJECT)
    project, store = load_project(tmp_path / "hostler.yaml"), open_store(str(tmp_path / "store"))

    def dead(self: Launcher, store: object) -> Launcher:
        raise HostError("no host answers")

    monkeypatch.setattr(Launcher, "prepared", dead)
    one = scout._candidate(sweep_launcher(project, store.url, "lab", None), store, JOB, 60.0)
    assert one.over and one.problem == "no host answers"
    assert "lab is left out: no host answers" in capsys.readouterr().err


def test_candidate_without_the_money_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hostler.yaml").write_text(PROJECT.replace("price: 3", "price: 3, max_cost: 0.01"))
    project, store = load_project(tmp_path / "hostler.yaml"), open_store(str(tmp_path / "store"))
    one = scout._candidate(sweep_launcher(project, store.url, "lab", None), store, JOB, 60.0)
    assert one.over and one.problem.startswith("max_cost 0.01 is less than")
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("  lab is left out: max_cost 0.01")


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ("200%/h", "a rate of 200%/h"),
        ("bla", "'bla' is not a rate"),
        ("tau=5%/h", "'tau' is not a simulated"),
    ],
)
def test_bad_rate_of_preemption_is_said_before_anything_starts(
    typed: Type, tmp_path: Path, rate: str, said: str
) -> None:
    (tmp_path / "hostler.yaml").write_text(PROJECT)
    (tmp_path / "grid.yaml").write_text("name: grid\nparameters: {lr: [1, 2]}\n")
    done = typed("scout", "grid.yaml", "--on", "lab", "--preempt", rate, "-y")
    assert done.code == 2 and said in done.err and len(done.err.splitlines()) == 2, done
    assert "named 'grid'" in typed("status", "grid").err  # nothing was submitted


def test_rate_of_a_fleet_that_never_started_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "hostler.yaml").write_text(PROJECT.replace("}}", "}, tau: {backend: local, price: 1}}"))
    project, store = load_project(tmp_path / "hostler.yaml"), open_store(str(tmp_path / "store"))
    launchers = [sweep_launcher(project, store.url, name, None) for name in ("lab", "tau")]
    known = MeasuredRate("lab", 2.0, steps=100, price=3.0)
    measured_rates.write(store, "grid", known)
    options = StudyOptions(preempt=("1%/h", "tau=20%/h", "lab=5%/h"), seeds=2)
    found, notes = scout.simulated(store, JOB, launchers, {"lab": known}, 2, options, Timing())
    assert set(found) == {"lab"} and found["lab"].finishes, notes


def test_this_machine_is_found_by_the_name_that_on_takes(tmp_path: Path) -> None:
    (tmp_path / "hostler.yaml").write_text(PROJECT)
    project, store = load_project(tmp_path / "hostler.yaml"), open_store(str(tmp_path / "store"))
    measured_rates.write(store, "grid", MeasuredRate("here", 2.0, steps=100, price=1.0))
    measured_rates.write(store, "grid", MeasuredRate("lab", 2.0, steps=100, price=3.0))
    assert chosen_launcher(store, project, store.url, "lab,local", JOB).fleet.name == "here"
    assert on_name("here") == "local" and on_name("lab") == "lab"


def test_steps_of_a_sweep_are_its_runs_mean() -> None:
    both = replace(JOB, runs=({"steps": 60}, {"steps": 600}))
    assert scout.mean_steps(both) == 330
    many = replace(JOB, runs=tuple({"epochs": 10 + n % 3} for n in range(3000)))
    assert scout.mean_steps(many) == 11
    assert scout.mean_steps(replace(JOB, runs=({"steps": 60}, {"lr": 1}))) is None
    assert scout.mean_steps(replace(JOB, runs=())) is None  # a search that has chosen nothing yet


def test_rate_that_changed_while_measured_is_said(tmp_path: Path) -> None:
    (tmp_path / "hostler.yaml").write_text(PROJECT)
    project, store = load_project(tmp_path / "hostler.yaml"), open_store(str(tmp_path / "store"))
    one = ScoutCandidate(sweep_launcher(project, store.url, "lab", None), speed=Speed(3.0, 1.0, 60.0, 0.4))
    [line] = scout._changed([one, replace(one, speed=Speed(3.0, 1.0, 60.0, 1.1))])
    assert line.startswith("lab: its rate at the end was 40 % of that at the beginning"), line


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a fleet that leaves its machine open. Google is not asked."""
    (tmp_path / "hostler.yaml").write_text(f"name: p\nstore: gs://b/p\ncommand: x\nfleets:{WISH}")
    monkeypatch.setattr(GceBackend, "informed", lambda self, fleet, buckets: fleet)
    return load_project(tmp_path / "hostler.yaml")


@pytest.mark.parametrize(
    ("runs", "tried"),
    [(9, ["cheap:T4", "cheap:L4", "cheap:A100"]), (3, ["cheap:T4", "cheap:L4"]), (2, ["cheap"])],
)
def test_wish_is_tried_on_each_machine_that_has_a_run(
    wide: Project, capsys: pytest.CaptureFixture[str], runs: int, tried: list[str]
) -> None:
    store = open_store(str(wide.root / "store"))
    named = [sweep_launcher(wide, "gs://b/p", name, None) for name in ("cheap", "one")]
    found = scout._wishes(named, store, runs)
    assert [one.name for one in found] == ["cheap", "one"]
    assert [[each.fleet.name for each in one.machines] for one in found] == [tried, ["one"]]
    assert ("left out" in capsys.readouterr().err) == (runs == 3)
    rates = list(scout._told_apart(["5%/h", "cheap=20%/h", "one=1%/h"], found))
    assert rates == ["5%/h", *(f"{name}=20%/h" for name in tried), "one=1%/h"]


def test_wish_keeps_the_rate_of_its_cheapest_machine(wide: Project) -> None:
    store = open_store(str(wide.root / "store"))
    found = scout._wishes([sweep_launcher(wide, "gs://b/p", "cheap", None)], store, 9)
    rates = {
        name: MeasuredRate(name, rate, steps=100, price=price)
        for name, rate, price in (("cheap:T4", 1.0, 1.0), ("cheap:L4", 9.0, 2.0))
    }
    assert scout._learn_wishes(store, JOB, found, {"cheap:T4": rates["cheap:T4"]}) == {}
    assert measured_rates.read(store, "grid", "cheap") is None  # its launches may begin with another
    names = scout._learn_wishes(store, JOB, found, rates)
    assert names["cheap:L4"] == "cheap" and set(names) == {"cheap:T4", "cheap:L4", "cheap:A100"}
    assert measured_rates.read(store, "grid", "cheap") == replace(rates["cheap:L4"], fleet="cheap")


def test_machine_of_a_wish_is_taken_by_name(wide: Project) -> None:
    one = sweep_launcher(wide, "gs://b/p", "cheap:l4", None).fleet
    assert one.name == "cheap:L4" and one.store == "gs://b/p" and one.options["gpu"] == ("L4:1",)
    assert of_launch(wide, slug("cheap:L4")) is not None and of_launch(wide, "nobody") is None
    with pytest.raises(MissingError, match="no machine 'cheap:L5'") as told:
        sweep_launcher(wide, "gs://b/p", "cheap:L5", None)
    assert "cheap:L4" in told.value.hint
    with pytest.raises(MissingError, match="one names its machine"):
        sweep_launcher(wide, "gs://b/p", "one:L4", None)
