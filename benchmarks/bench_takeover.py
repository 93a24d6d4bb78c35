"""Seconds from the last beat of a worker that vanishes to the next attempt's claim, with short leases.

Killed with its machine, or with its machine's link down: one lease. In a place that its platform fills again
(a worker by its parent, a task by a real Slurm, a pod and a VM by their stand-ins) the lease has ten minutes
to go: from the kill, or the successor's start, there are three seconds.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from row import Row

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests/faults"))

from killer import send
from takeovers import holder, last_beat, taken_over, vanish

import platform_takeovers
import sshhosts
from fleet_world import FleetWorld, store_of
from gce_world import cloud
from hostler.emulators.k8s import Pace
from k8s_world import pods
from platform_takeovers import AT_ONCE, FAR
from slurm_cluster import cluster
from slurm_world import SlurmWorld
from worker_world import FAST, World

BEAT, LEASE = 1.0, 10.0
Measure = Callable[[Path, pytest.MonkeyPatch], float]


def main() -> list[Row]:
    late: dict[str, Measure] = {
        "machine killed": _killed,
        "link of the machine down": _link_down,
        "node of a pod cut": _node_cut,
    }
    at_once: dict[str, Measure] = {
        "worker killed": _worker_killed,
        "task queued again by Slurm": _task_queued_again,
        "pod of the same index": _pod_filled_again,
        "VM of the same name": _vm_filled_again,
    }
    rows = [_row(name, measure, LEASE, (LEASE + 2 * BEAT) / LEASE) for name, measure in late.items()]
    rows += [_row(name, measure, AT_ONCE, 1.0) for name, measure in at_once.items()]
    return [row for row in rows if row]


def _row(name: str, measure: Measure, floor: float, bound: float) -> Row | None:
    """None where this machine lacks what is to be measured."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hostler-bench-") as place,
            pytest.MonkeyPatch.context() as patch,
        ):
            return Row(f"takeover, {name}", measure(Path(place), patch), floor, bound, "s")
    except pytest.skip.Exception as lack:
        print(f"bench_takeover: {name}: {lack}; not measured", file=sys.stderr)
        return None


def _killed(folder: Path, patch: pytest.MonkeyPatch) -> float:
    """Another worker is there, which has a run of its own and room for one more."""
    url = str(folder / "store")
    with (
        holder(url, folder / "lost", beat=BEAT, lease=LEASE) as (lost, job),
        holder(url, folder / "other", "--slots", "2", name="other", beat=BEAT, lease=LEASE) as (other, _),
    ):
        time.sleep(3 * BEAT)
        vanish(lost)
        return taken_over(other, job) - last_beat(lost, job)


def _link_down(folder: Path, patch: pytest.MonkeyPatch) -> float:
    with sshhosts.running(folder, 3) as hosts:
        patch.setenv("PATH", str(hosts.ssh_path), prepend=":")
        patch.setenv("TMPDIR", str(hosts.short))
        lab = FleetWorld(folder / "world", hosts, store_of("bench"))
        try:
            return platform_takeovers.link_cut(lab, BEAT, LEASE).seconds
        finally:
            lab.hang_up()
            lab.close()


def _node_cut(folder: Path, patch: pytest.MonkeyPatch) -> float:
    with pods(folder, pace=Pace(node_gone=float(FAR))) as world:
        return platform_takeovers.node_cut(world, BEAT, LEASE).seconds


def _worker_killed(folder: Path, patch: pytest.MonkeyPatch) -> float:
    """The worker alone is killed, with all below it; its parent starts another."""
    with holder(str(folder / "store"), folder / "lost", beat=BEAT, lease=float(FAR)) as (lost, job):
        [parent] = lost.parents
        killed = time.time()
        for pid in set(lost.processes()) - {parent.pid}:
            send(pid, signal.SIGKILL)
        return taken_over(lost, job) - killed


def _task_queued_again(folder: Path, patch: pytest.MonkeyPatch) -> float:
    with cluster(folder / "slurm", nodes=2, cpus=2, speed=30) as site:
        own = {"HOSTLER_CACHE": str(folder / "cache"), "XDG_RUNTIME_DIR": str(folder)}
        for name, value in {**site.variables, **own}.items():
            patch.setenv(name, value)
        world = World(folder / "world", timing=replace(FAST, beat=BEAT, lease=float(FAR)))
        return platform_takeovers.task_queued_again(SlurmWorld(site, world)).seconds


def _pod_filled_again(folder: Path, patch: pytest.MonkeyPatch) -> float:
    with pods(folder) as world:
        return platform_takeovers.pod_filled_again(world).seconds


def _vm_filled_again(folder: Path, patch: pytest.MonkeyPatch) -> float:
    with cloud(folder) as world:
        return platform_takeovers.vm_filled_again(world).seconds


if __name__ == "__main__":
    for row in main():
        print(row.name, round(row.ours, 2), "bound", round(row.bound * row.floor, 2) if row.bound else "")
