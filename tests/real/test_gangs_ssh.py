"""Machines by ssh that train one model together: they find each other by their addresses."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from fleet_world import FleetWorld, store_of
from gang_world import GANG_BY_HAND, TRAINS
from sshhosts import LENT, Host, Hosts

pytestmark = [pytest.mark.real, pytest.mark.needs("sshd"), pytest.mark.needs("ssh")]


@pytest.fixture
def lab(tmp_path: Path, hosts: Hosts) -> Iterator[FleetWorld]:
    made = FleetWorld(tmp_path / "world", hosts, store_of(tmp_path.name), HOSTLER_GRACE="15")
    made.write("train.py", GANG_BY_HAND)
    yield made
    made.hang_up()
    made.close()


@pytest.fixture
def torch_lab(lab: FleetWorld, hosts: Hosts) -> Iterator[FleetWorld]:
    """Its hosts can train with torch."""
    lab.write("train.py", TRAINS)
    lent = [lend_torch(hosts[name]) for name in ("n2", "n3")]
    yield lab
    for path in lent:
        path.unlink()


def lend_torch(host: Host) -> Path:
    """The hosts have no torch: their Python is shown the one of the tests."""
    servers.library("torch")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    path = host.home / ".local" / "lib" / version / "site-packages" / "lent.pth"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{LENT}\n")
    return path


def project(lab: FleetWorld, nodes: int, procs: int, hosts: str, **env: str) -> None:
    variables = json.dumps({"MARKS": "/tmp/marks", **env})
    lab.write(
        "hostler.yaml",
        f"""\
name: walk
command: python3 -u train.py
store: {lab.url}
fleet: lab
env: {variables}
resources: {{nodes: {nodes}, procs_per_node: {procs}}}
fleets: {{lab: {{backend: ssh, hosts: [{hosts}]}}}}
""",
    )


def weights(text: str) -> dict[int, str]:
    return dict(json.loads(found) for found in re.findall(r"^weights (.*)$", text, re.MULTILINE))


@pytest.mark.timeout(500)
def test_four_ranks_on_two_hosts_lose_one_without_changing_weights(lab: FleetWorld) -> None:
    """They sum by sockets, without torch, which takes each of twelve processes seconds to load."""
    lose_one(lab)


@pytest.mark.soak
@pytest.mark.timeout(500)
def test_four_torch_ranks_on_two_hosts_lose_one_without_changing_weights(torch_lab: FleetWorld) -> None:
    lose_one(torch_lab)


def lose_one(lab: FleetWorld) -> None:
    project(lab, 2, 2, "n2, n3")
    whole = lab.run("run", "--name", "whole", timeout=240)
    assert whole.code == 0, whole.out + whole.err
    project(lab, 2, 2, "n2, n3", KILL="[3, 13]", NAP="0.15", EVERY="0.5")
    killed = lab.run("run", "--name", "killed", timeout=240)
    assert killed.code == 0, killed.out + killed.err
    found = weights(lab.run("logs", "killed").out)
    assert found == weights(lab.run("logs", "whole").out) and sorted(found) == [0, 1, 2, 3]
    assert "goes on from checkpoint" in lab.run("logs", "killed").out
    lab.quiet()


def test_run_needing_more_hosts_than_there_are_is_refused_early(
    lab: FleetWorld,
) -> None:
    project(lab, 3, 1, "n2, n3")
    answer = lab.run("run")
    assert answer.code and "takes 3 workers at once, but lab has 2" in answer.err
    assert lab.run("status", "--json").json == []
