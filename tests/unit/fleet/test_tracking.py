from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hostler
from hostler.errors import MachineError, UsageError
from hostler.fleet.tracking import check
from hostler.spec.job import PythonEnv
from hostler.spec.project import Project, default_project
from hostler.spec.tracking import Tracking
from hostler.trackers import registry
from hostler.trackers.feed import FeederPython

SOURCE = str(Path(hostler.__file__).parents[1])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return default_project(tmp_path)


def bare(folder: Path) -> str:
    """A Python with nothing installed."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_missing_tracker_package_is_reported_before_submission(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "is_here", lambda kind: False)
    asked = replace(project, trackers=(Tracking("wandb"),), python=PythonEnv(exe=bare(tmp_path)))
    with pytest.raises(MachineError, match=r"wandb needs the package wandb, which .*python does not") as said:
        check(asked, pytest.fail, here=True)
    assert "hostler[wandb]" in said.value.hint
    check(asked, pytest.fail, here=False)  # another machine's Python is not known
    check(replace(asked, python=PythonEnv(exe=sys.executable)), pytest.fail, here=True)


def test_a_folder_of_a_packages_name_is_not_the_package(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wandb").mkdir()  # W&B writes there what it has not sent
    monkeypatch.chdir(tmp_path)
    assert not FeederPython(bare(tmp_path), {"PYTHONPATH": SOURCE}).has("wandb")
    assert FeederPython(sys.executable, {"PYTHONPATH": SOURCE}).has("wandb")


def test_hostlers_own_python_will_do(project: Project, tmp_path: Path) -> None:
    python = PythonEnv(exe=bare(tmp_path))
    check(replace(project, trackers=(Tracking("wandb"),), python=python), pytest.fail, here=True)


def test_requirements_without_the_package_are_said(project: Project) -> None:
    said: list[str] = []
    (project.root / "r.txt").write_text("torch\nwandb_core_like\n# wandb\n")
    asked = replace(project, trackers=(Tracking("comet"),), python=PythonEnv(requirements="r.txt"))
    check(asked, said.append, here=False)
    assert len(said) == 1 and "comet_ml is not in r.txt" in said[0]
    (project.root / "r.txt").write_text("torch\nComet-ML >= 3\n")
    check(asked, pytest.fail, here=False)


def test_tensorboard_needs_nothing(project: Project) -> None:
    check(replace(project, trackers=(Tracking("tensorboard"),)), pytest.fail, here=True)


def test_mlflow_without_a_place_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = replace(project, trackers=(Tracking("mlflow"),))
    with pytest.raises(UsageError, match="mlflow has no uri"):
        check(asked, pytest.fail, here=True)
    check(replace(asked, secrets=("MLFLOW_TRACKING_URI",)), pytest.fail, here=True)
    check(replace(asked, env={"MLFLOW_TRACKING_URI": "x"}), pytest.fail, here=True)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "x")
    check(asked, pytest.fail, here=True)
