"""One sweep that Slurm, ssh and local workers work on together, in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from fleet_world import FleetWorld, bucket
from slurm_cluster import Cluster, cluster
from sshhosts import Hosts, wait_until

pytestmark = [pytest.mark.real, pytest.mark.needs("sshd"), pytest.mark.needs("sbatch")]

STEPS = """
import json, os, pathlib, time
while not any(pathlib.Path(gate).exists() for gate in (GATE, "/root/mixed-fleets-go")):
    time.sleep(0.05)
place = 1 if "SLURM_JOB_ID" in os.environ else 2 if os.uname().nodename in ("n1", "n2") else 0
for step in range(8):
    print(json.dumps({"step": step, "value": step, "place": place}), flush=True)
    time.sleep(0.02)
"""
FLEETS = """
name: walk
command: python steps.py
style: json
store: {store}
fleets:
  tau: {{backend: slurm, workers: 2, runs_per_worker: 100, slots: 1, cache: {cache}}}
  lab: {{backend: ssh, hosts: [n1, n2]}}
"""


@pytest.fixture
def site(tmp_path: Path, hosts: Hosts) -> Iterator[Cluster]:
    """A cluster in the network of the laptop."""
    within = ("nsenter", f"--net=/run/netns/{hosts.head}")
    with cluster(tmp_path / "slurm", nodes=2, cpus=1, within=within) as made:
        yield made


def test_slurm_ssh_and_local_workers_share_a_sweep(tmp_path: Path, hosts: Hosts, site: Cluster) -> None:
    with bucket(hosts, tmp_path) as given:
        url = f"s3://{servers.BUCKET}/mixed"
        desk = FleetWorld(tmp_path / "world", hosts, url, **given, **site.variables)
        desk.write("steps.py", STEPS.replace("GATE", repr(str(tmp_path / "go"))))
        desk.write("hostler.yaml", FLEETS.format(store=url, cache=tmp_path / "nodes"))
        desk.submit(16, steps=8, nap=0)
        began = {  # no run ends before all fleets have one: none comes too late to find work
            "tau": lambda: not desk.until("running", 2),
            "lab": lambda: hosts["n1"].pids("steps.py") or hosts["n2"].pids("steps.py"),
            "local": lambda: desk.processes(holding="steps.py"),
        }
        for fleet, working in began.items():
            answer = desk.run("up", fleet)
            assert answer.code == 0 and "started" in answer.err, answer.err
            wait_until(working, 150)
        for gate in (tmp_path / "go", *(hosts[name].home / "mixed-fleets-go" for name in ("n1", "n2"))):
            gate.touch()
        desk.done(16)
        found = desk.outcomes()
        assert [one["kinds"] for one in found] == [["claim", "end"]] * 16, "each once, by one of them"
        assert all(one["points"]["value"] == [[n, n] for n in range(8)] for one in found)
        places = [one["points"]["place"][0][1] for one in found]
        assert set(places) == {0, 1, 2}, places
        desk.quiet()
        wait_until(lambda: not site.states() and not desk.processes(), 60)
        desk.close()
