"""Fleets of real sshd machines, by the commands a person types on a laptop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_world import FleetWorld
from sshhosts import Hosts, wait_until

pytestmark = [pytest.mark.real, pytest.mark.needs("sshd"), pytest.mark.needs("ssh")]


@pytest.fixture
def lab(tmp_path: Path, hosts: Hosts) -> Iterator[FleetWorld]:
    made = FleetWorld(tmp_path / "world", hosts, f"ssh://n1/tmp/{tmp_path.name}")
    yield made
    made.hang_up()
    made.close()


def test_a_run_on_a_host_is_followed_to_its_end_and_nothing_is_left(lab: FleetWorld, hosts: Hosts) -> None:
    lab.project(hosts=("n2",))
    answer = lab.run("run", "steps=3", "lr=2")
    assert answer.code == 0, answer.err
    assert '"value": 4.0' in answer.out
    shown = lab.run("show", "--json", "walk").json
    assert "n2" in str(shown)
    lab.quiet()
