"""Slurm from a machine that only reaches the login node, by ssh: commands are typed there, files lie there.

hostler and a store's driver are brought into the cache of the login node, which the compute nodes see, too;
they need no network for it and nothing is installed. Secrets and credentials are in a file of that cache
which only the user may read, and neither in a command line nor in the environment of sbatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hostler.backends.arrays import with_vault
from hostler.backends.base import Capabilities, Launch, MachineInfo, Plan, Question, WorkerInfo
from hostler.backends.over import Over
from hostler.backends.slurm.backend import SlurmBackend
from hostler.remote.library_zip import sha_of
from hostler.remote.target import parse
from hostler.spec.project import Fleet

CAPABILITIES = Capabilities(restarts=True, gangs=True, shared=True, tells=True, scripts=True)


class LoginBackend(SlurmBackend):
    def __init__(self, fleet: Fleet) -> None:
        self._over = Over(parse(str(fleet.options["login"])), fleet.cache)
        super().__init__(terminal=self._over, capabilities=CAPABILITIES)

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        machine_info = launch.machines.get(self._over.place)
        seen = as_seen_from(launch, self._over.place)
        return super().plan(fleet, with_vault(fleet, seen, machine_info.cache) if machine_info else seen)

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        launch = plan.launch or Launch("")
        self._over.bring(launch.wheels.get(self._over.place, ()))
        return super().start(plan)

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        """The login node: it stands for the compute nodes, which Slurm chooses."""
        machine = self._over.survey(question)
        return [machine] if machine.problem else super().survey(fleet, question) or [machine]


def as_seen_from(launch: Launch, host: str) -> Launch:
    """The same with the paths of a machine that was asked; unchanged for one that was not. Pure."""
    machine_info = launch.machines.get(host)
    if machine_info is None:
        return launch
    store = launch.folders.get(host, launch.store)
    base = store if host in launch.folders else machine_info.cache
    wheels = [
        f"{machine_info.cache}/wheels/{sha_of(Path(file).read_bytes())}"
        for file in launch.wheels.get(host, ())
    ]
    return replace(
        launch,
        store=store,
        python=machine_info.exe,
        logs=f"{base.rstrip('/')}/{launch.logs}" if launch.logs else "",
        library=":".join([machine_info.library, *wheels]),
    )
