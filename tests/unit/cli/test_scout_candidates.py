"""`hostler scout`: fleets that cannot be tried, and the name of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.backends.project_file import load_project
from hostler.cli.run import scout
from hostler.cli.run.fleet_pick import chosen_launcher
from hostler.errors import HostError
from hostler.fleet.fleet_choice import on_name
from hostler.fleet.launcher import Launcher, sweep_launcher
from hostler.records.sweep import measured_rates
from hostler.records.sweep.measured_rates import MeasuredRate
from hostler.spec.job import Job
from hostler.store import open_store

JOB = Job("grid", ("python", "train.py"))
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


def test_this_machine_is_found_by_the_name_that_on_takes(tmp_path: Path) -> None:
    (tmp_path / "hostler.yaml").write_text(PROJECT)
    project, store = load_project(tmp_path / "hostler.yaml"), open_store(str(tmp_path / "store"))
    measured_rates.write(store, "grid", MeasuredRate("here", 2.0, steps=100, price=1.0))
    measured_rates.write(store, "grid", MeasuredRate("lab", 2.0, steps=100, price=3.0))
    assert chosen_launcher(store, project, store.url, "lab,local", JOB).fleet.name == "here"
    assert on_name("here") == "local" and on_name("lab") == "lab"
