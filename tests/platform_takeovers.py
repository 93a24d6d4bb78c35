"""Machines that die while their run has long to go, on each platform: seconds until it is claimed again.

A pod, a task and a VM are filled again by their platform, long before the lease is over: seconds from the
start of the successor. A host whose link is down is not: seconds from its last beat.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from claim_times import claimed_at, claims, last_beat
from fleet_world import FleetWorld
from gce_world import CloudWorld, eventually
from hostler.records.rows import rows
from hostler.records.run.log import RunKey
from hostler.spec.job import Checkpointing
from hostler.store import open_store
from k8s_world import Pods
from slurm_world import COUNTS, SlurmWorld
from sshhosts import wait_until

FAR = "600"  # seconds of a lease that is not over while anybody looks
AT_ONCE = 3.0  # seconds from the start of a successor in the same place
STEPS = 8  # of a pod's run
PRESSURE = Path("/proc/pressure/cpu")


@dataclass(frozen=True)
class Takeover:
    """`seconds` until the next claim; `stalled`: of these, at most, those for which a process of this machine
    waited for a core. At rest there are hardly any; with a dozen tests beside there is little else."""

    seconds: float
    stalled: float

    def within(self, bound: float) -> bool:
        return self.seconds <= bound + self.stalled


def waited() -> float:
    """Seconds since the machine's start for which somebody waited for a core; 0 where no kernel tells."""
    told = re.search(r"some .*total=(\d+)", PRESSURE.read_text() if PRESSURE.exists() else "")
    return int(told[1]) / 1e6 if told else 0.0


def pod_filled_again(world: Pods) -> Takeover:
    """A pod is killed, and its Job makes one of the same index. Its run waits before its last step for
    the file "hold" to go."""
    assert world.cluster
    held = Path(world.url, "hold")
    world.project(1, head="retries: 2")
    held.touch()
    world.sweep_file(1, steps=STEPS, hold=str(held))
    launched = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600, HOSTLER_LEASE=FAR)
    assert launched.code == 0, launched.err
    world.until(lambda: any((row.step or 0) > 3 for row in world.rows("grid")))
    [pod] = world.pods()
    [row] = world.rows("grid")
    store, key = open_store(world.url), RunKey("grid", row.id)
    before = waited()
    world.cluster.kill(pod, "Error")
    world.until(lambda: len(claims(store, key)) > 1)
    [later] = [name for name in world.pods() if name != pod]
    return Takeover(claimed_at(store, key, 2) - world.cluster.began(later), waited() - before)


def node_cut(world: Pods, beat: float, lease: float) -> Takeover:
    """The node of a pod is gone without a word, and the cluster does not know it for long; another pod has a
    run of its own and room for one more. The runs wait before their last steps for the file "hold" to go."""
    assert world.cluster
    held = Path(world.url, "hold")
    world.env |= {"HOSTLER_BEAT": str(beat), "HOSTLER_LEASE": str(lease)}
    world.project(2, "slots: 2", head="retries: 2")
    held.touch()
    world.sweep_file(3, steps=STEPS, hold=str(held))
    launched = world.run("sweep", "-y", "--on", "gke", "grid.yaml", timeout=600)
    assert launched.code == 0, launched.err
    world.until(lambda: sum((row.step or 0) > 3 for row in world.rows("grid")) == 3)
    names = world.pods()
    on = {row.id: next(pod for pod in names if pod.startswith(str(row.host))) for row in world.rows("grid")}
    fuller = max(names, key=list(on.values()).count)
    store = open_store(world.url)
    lost = [RunKey("grid", run) for run, pod in on.items() if pod == fuller]
    before = waited()
    world.cluster.lose_node(world.cluster.pod(fuller)["spec"]["nodeName"])
    world.until(lambda: any(len(claims(store, key)) > 1 for key in lost))
    stalled = waited() - before
    taken = next(key for key in lost if len(claims(store, key)) > 1)
    return Takeover(claimed_at(store, taken, 2) - last_beat(store, taken), stalled)


def vm_filled_again(world: CloudWorld) -> Takeover:
    """A VM is preempted without a word, and its group makes one of the same name. Its run waits until
    `let_go`."""
    world.env = {**world.env, "HOSTLER_LEASE": FAR}
    world.project(workers=1, zones=["us-central1-a"])
    world.sweep_file(1, hold=world.hold())
    world.launched("grid.yaml")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in world.gce.environ().items():
            patch.setenv(name, value)
        store = open_store("gs://runs/cifar")
        [row] = json.loads(world.run("status", "grid", "--json").out)
        key = RunKey("grid", row["id"])
        eventually(lambda: len(claims(store, key)) == 1, 60)
        [lost] = world.gce.names()
        before = waited()
        world.gce.preempt(lost, notice=False)
        eventually(lambda: len(claims(store, key)) > 1, 120)
        stalled = waited() - before
        [made] = world.gce.machines()
        assert made.name == lost
        begun = datetime.fromisoformat(made.body["lastStartTimestamp"]).timestamp()
        return Takeover(claimed_at(store, key, 2) - begun, stalled)


def task_queued_again(here: SlurmWorld) -> Takeover:
    """The node of a task crashes, and Slurm starts the task anew, on another one."""
    given = {"STEPS": "20", "PACE": "0.05", "HOLD": "6"}
    job = here.world.submit(COUNTS, env=given, checkpoint=Checkpointing(every=0.3))
    store, key, fleet = here.world.store, here.world.key(job), here.fleet(1)
    here.start(fleet, job)
    here.until(lambda: len(here.steps(job)) > 3)
    [worker] = here.backend.list(fleet)
    before = waited()
    here.site.kill_node(worker.host)
    here.until(lambda: len(claims(store, key)) > 1, 120)
    stalled, begun = waited() - before, here.site.started_at(worker.id)
    here.site.start_node(worker.host)
    here.until_gone(fleet, 120)
    assert here.states(job) == ["done"]
    return Takeover(claimed_at(store, key, 2) - begun, stalled)


def link_cut(lab: FleetWorld, beat: float, lease: float) -> Takeover:
    """The link of a host goes down; another one is there, with a run of its own and room for one more."""
    lab.env |= {"HOSTLER_BEAT": str(beat), "HOSTLER_LEASE": str(lease)}
    lab.submit(2, steps=10, nap=0.02)
    for host, slots in (("n3", 1), ("n2", 2)):
        lab.project(hosts=(host,), slots=slots)
        lab.hold(host)
        answer = lab.run("up")
        assert answer.code == 0, answer.err
        wait_until(lambda host=host: lab.hosts[host].pids("steps.py"), 90)
    time.sleep(3 * beat)
    store = lab.near()
    [lost] = [RunKey(row.sweep, row.id) for row in rows(store) if row.host == "n3"]
    before = waited()
    lab.hosts["n3"].cut()
    wait_until(lambda: len(claims(store, lost)) > 1, 120)
    return Takeover(claimed_at(store, lost, 2) - last_beat(store, lost), waited() - before)
