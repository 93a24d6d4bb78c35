"""Every backend passes a launch's name and deadline on to its workers."""

from __future__ import annotations

import pytest

from hostler.backends.base import Launch
from hostler.backends.registry import backend
from hostler.spec.project import Fleet

LAUNCH = Launch("/store", ("s",), generation="lab/3", deadline=1794758758.14, at=1794750000.0, runs=2)


@pytest.mark.parametrize("name", ["local", "ssh", "slurm"])
def test_workers_are_told_their_launch_and_its_deadline(name: str) -> None:
    fleet = Fleet("lab", name, workers=2, options={"hosts": ("n1", "n2")} if name == "ssh" else {})
    text = backend(name).plan(fleet, LAUNCH).text
    assert "--fleet lab/3 --deadline 1794758758.1" in text
    bare = backend(name).plan(fleet, Launch("/store", ("s",), runs=2)).text
    assert "--fleet" not in bare and "--deadline" not in bare
