"""Checks fleets on other machines: whether they answer, what they have, whether they reach the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hostler.backends.base import Backend, Launch, MachineInfo, Question
from hostler.backends.doctor import BAD, OK, Check
from hostler.backends.registry import BACKENDS, backend_of
from hostler.cli.here import open_at
from hostler.errors import HostlerError
from hostler.fleet import ready
from hostler.fleet.fleet_choice import owned
from hostler.spec.project import Fleet, Project
from hostler.store import Store
from hostler.store.registry import is_folder


def fleets(project: Project, url: str) -> Iterator[Check]:
    for fleet in project.fleets.values():
        if fleet.backend not in BACKENDS:
            continue
        engine = backend_of(fleet)
        if engine.capabilities.shares_disk:
            continue
        try:
            yield from _fleet(engine, owned(project, fleet, url), open_at(url))
        except HostlerError as error:
            yield Check(BAD, fleet.name, error.message, error.hint)


def _fleet(engine: Backend, fleet: Fleet, store: Store) -> Iterator[Check]:
    if engine.capabilities.makes_machines:
        yield from _made(engine, fleet, store)
        return
    with ready.sign(store, ready.folder_of(store.url)) as path:
        machines = engine.survey(fleet, Question(path=path))
    up = [machine for machine in machines if not machine.problem]
    reached = {} if is_folder(store.url) else _reached(engine, fleet, store, up)
    for machine in machines:
        yield _machine(machine, store.url, reached.get(machine.host, ""))


def _made(engine: Backend, fleet: Fleet, store: Store) -> Iterator[Check]:
    """Its machines are not there yet: whether they could be made, and would reach the store."""
    engine.plan(fleet, Launch(store.url))
    for machine in engine.survey(fleet, Question()):
        if machine.problem:
            yield Check(BAD, machine.host, machine.problem, machine.hint)
        else:
            yield Check(OK, machine.host, "its machines can be made; they come with a launch")


def _reached(engine: Backend, fleet: Fleet, store: Store, up: list[MachineInfo]) -> dict[str, str]:
    """host → why it cannot write to the store; those that have its folder need no other way."""
    wheels = ready.drivers(store, up)
    question = Question(store=store.url, variables=ready.variables(store), wheels=wheels)
    machine_infos = engine.survey(fleet, question)
    seeing = {machine.host for machine in up if machine.sees}
    return {machine.host: machine.unreached for machine in machine_infos if machine.host not in seeing}


def _machine(machine: MachineInfo, url: str, unreached: str) -> Check:
    if machine.problem:
        return Check(BAD, machine.host, machine.problem, machine.hint)
    names = Counter(machine.gpus)
    gpus = ", ".join(f"{count} × {name}" for name, count in names.items()) or "no GPU"
    detail = f"Python {machine.python}, {machine.cpus} CPUs, {gpus}"
    if machine.sees:
        return Check(OK, machine.host, f"{detail}; has the store's folder")
    if is_folder(url):
        return Check(BAD, machine.host, f"{detail}; cannot see the store's folder {url}", ready.WAYS_OUT)
    if unreached:
        todo = f"{machine.host} itself must reach it: {_way(url)}"
        return Check(BAD, machine.host, f"{detail}; cannot use the store: {unreached}", todo)
    return Check(OK, machine.host, f"{detail}; reaches the store")


def _way(url: str) -> str:
    if ready.scheme_of(url) == "ssh":
        return "a key of its own, allowed there, and that host's key known; try ssh from there"
    return "credentials and network; they are sent from here if they are in variables"
