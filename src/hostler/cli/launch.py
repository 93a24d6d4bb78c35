"""Starts workers for sweeps: which fleet is meant, and what it needs first. Used by run, resume, retry."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hostler import env
from hostler.backends.base import Backend, Launch, Plan, WorkerInfo
from hostler.backends.registry import backend
from hostler.cli.here import open_at
from hostler.cli.ready import Readiness, left_out, ready, variables
from hostler.errors import MachineError, MissingError, UsageError
from hostler.records import sweeps
from hostler.spec.nearest import did_you_mean
from hostler.spec.project import Fleet, Project
from hostler.store import Store

_HERE = Fleet(name="here", backend="local", slots=1)


@dataclass(frozen=True)
class Launcher:
    """One fleet and the backend that starts its workers."""

    project: Project
    url: str
    fleet: Fleet
    engine: Backend
    ready: Readiness | None = None  # None: the machines were not asked yet
    skip: frozenset[str] = frozenset()  # hosts that have workers already

    def prepared(self, store: Store) -> Launcher:
        """Asked before anything is submitted: machines that answer, and a store that they reach."""
        return replace(self, ready=ready(self.engine, self.fleet, store))

    def beside_others(self) -> Launcher:
        """Only for machines that have no worker of this fleet."""
        found = self.engine.list(self.fleet)
        return replace(self, skip=frozenset(worker.host for worker in found if worker.alive))

    def plan(self, names: Iterable[str], more: Mapping[str, str] | None = None) -> Plan:
        cache = self.project.cache
        if cache and self.engine.capabilities.shares_disk:
            cache = str(self.project.root / Path(cache).expanduser())
        known = self.ready or Readiness()
        launch = Launch(
            store=self.url,
            sweeps=tuple(names),
            python=sys.executable,
            cache=cache,
            variables=more or {},
            folders=known.folders,
            wheels=known.wheels,
            skip=self.skip,
        )
        return self.engine.plan(self.fleet, launch)

    def start(self, names: Iterable[str]) -> Sequence[WorkerInfo]:
        """The workers that were started; machines that had none are named."""
        wanted, more = tuple(dict.fromkeys(names)), dict[str, str]()
        if not self.engine.capabilities.shares_disk:
            store = open_at(self.url)
            if self.ready is None:
                return self.prepared(store).start(wanted)
            more = variables(
                store, [secret for name in wanted for secret in sweeps.load(store, name).secrets]
            )
        started = self._start(self.plan(wanted, more))
        for worker in started:
            if not worker.alive:
                left_out(worker.host, worker.detail)
        return [worker for worker in started if worker.alive]

    def _start(self, plan: Plan) -> Sequence[WorkerInfo]:
        try:
            return self.engine.start(plan)
        except OSError as error:
            raise MachineError(
                f"no worker could be started: {error.strerror}: {error.filename or env.machine_dir()}",
                hint="free space there, or set TMPDIR to another folder",
            ) from error


def launcher(project: Project, url: str, on: str | None) -> Launcher:
    fleet = fleet_of(project, on)
    return Launcher(project, url, fleet, backend(fleet.backend))


def fleet_of(project: Project, on: str | None) -> Fleet:
    name = on or project.fleet
    if name is not None and name in project.fleets:
        return replace(project.fleets[name], scope=project.name)
    if name is None or name == "local":
        return _HERE
    known = ["local", *project.fleets]
    hint = did_you_mean(
        name, known, f"hostler.yaml has: {', '.join(project.fleets) or 'none'}; or --on local"
    )
    raise MissingError(f"there is no fleet {name!r}", hint=hint)


def sweep_launcher(project: Project, url: str, on: str | None, parallel: int | None) -> Launcher:
    fleet = sweep_fleet(project, on, parallel)
    return Launcher(project, url, fleet, backend(fleet.backend))


def sweep_fleet(project: Project, on: str | None, parallel: int | None) -> Fleet:
    """The fleet that is meant. This machine alone takes as many at once as the sweep allows, or as fit."""
    fleet = fleet_of(project, on)
    return replace(fleet, slots=parallel) if fleet == _HERE else fleet


def check_secrets(names: Iterable[str]) -> None:
    """Before anything is submitted: a run without its secrets would only fail later."""
    unset = [name for name in dict.fromkeys(names) if not env.secret(name)]
    if unset:
        raise UsageError(
            f"not set here: {', '.join(unset)} (named under `secrets:`)",
            hint=f"export {unset[0]}=…, then again",
        )
