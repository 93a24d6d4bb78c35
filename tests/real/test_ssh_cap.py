"""A cap on machines that are reached by ssh: their workers keep it themselves, with nobody connected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_world import FleetWorld, store_of
from sshhosts import Hosts

pytestmark = [pytest.mark.real, pytest.mark.needs("sshd"), pytest.mark.needs("ssh")]
CAP = {"HOSTLER_CAP_MARGIN": "1", "HOSTLER_ACCOUNT": "0.5"}


@pytest.fixture
def lab(tmp_path: Path, hosts: Hosts) -> Iterator[FleetWorld]:
    made = FleetWorld(tmp_path / "world", hosts, store_of(tmp_path.name), **CAP)
    yield made
    made.hang_up()
    made.close()


def test_workers_of_hosts_save_and_leave_at_the_cap(lab: FleetWorld) -> None:
    lab.project(hosts=("n2", "n3"), price=1800, max_cost=20)
    begun = lab.run("run", "-y", "--detach", "steps=100000", "nap=0.1")
    assert begun.code == 0, begun.err
    assert "2 workers at 1800.00 an hour, 3600.00 in all" in begun.err
    assert "gone after 19s at the latest" in begun.err
    lab.quiet(90)
    [row] = lab.run("status", "--json").json
    assert (row["state"], row["paused_by"]) == ("paused", "cap")
    [fleet] = lab.run("cost", "--json").json["fleets"]
    assert fleet["over"] and 0 < fleet["cost"] <= 20
    assert row["cost"] <= fleet["cost"]
