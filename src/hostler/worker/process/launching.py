"""Command that starts the processes of a node: the run's own, or a starter that starts several."""

from __future__ import annotations

from pathlib import Path

from hostler import env
from hostler.records.run import handoff
from hostler.records.run.gang import GangStart
from hostler.spec.argv import Built
from hostler.spec.job import Job
from hostler.worker.gang import launchers, meeting, ranks
from hostler.worker.process import spawning


def launched(built: Built, job: Job, go: GangStart, node: int, folder: Path) -> Built:
    """The same command, for all processes of this node. A launcher, such as torchrun, starts them itself."""
    procs = job.resources.procs_per_node
    if job.resources.fewest < job.resources.nodes:
        built = Built(built.argv, {**built.env, env.ELASTIC: "1"})
    built = Built(built.argv, {**_interface(go, node), **built.env})
    if launchers.is_launcher(built.argv):
        told = launchers.variables(go, node, procs)
        return Built(launchers.command(built.argv, go, node, procs), {**built.env, **told})
    variables = ranks.variables(job.distributed, go, node, procs)
    if procs == 1:
        return Built(built.argv, {**built.env, **variables[0]})
    file = folder / "processes.json"
    handoff.write(file, variables)
    words = [spawning.python(), "-I", "-S", spawning.text(folder, "starter.py"), str(file), *built.argv]
    return Built(tuple(words), built.env)


def _interface(go: GangStart, node: int) -> dict[str, str]:
    """gloo asks for the host's own name, which on many machines means loopback: it is told the way out."""
    address = go.nodes[node].address
    name = "" if address == meeting.LOOPBACK else meeting.interface_of(address)
    return {"GLOO_SOCKET_IFNAME": name} if name else {}
