"""The fleet that a person means."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.backends.project_file import load_project
from hostler.fleet.fleet_choice import sweep_fleet
from hostler.spec.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "hostler.yaml").write_text("fleets: {here: {backend: local, slots: 2}}\nfleet: here\n")
    return load_project(tmp_path / "hostler.yaml")


def test_fleet_named_here_keeps_its_slots(project: Project) -> None:
    assert sweep_fleet(project, None, None).slots == 2
    assert sweep_fleet(project, "here", 5).slots == 2


def test_machine_without_a_fleet_takes_what_the_sweep_allows(project: Project) -> None:
    assert sweep_fleet(project, "local", 5).slots == 5
    assert sweep_fleet(project, "local", None).slots is None
