"""The fleet that a person means, by its name, or none; and the backend of a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hostler import env
from hostler.backends.base import Backend, Choosing, Cloud
from hostler.backends.registry import BACKENDS, HERE, backend, backend_of
from hostler.errors import MissingError, UsageError
from hostler.fleet.ready import say
from hostler.spec.names import slug
from hostler.spec.nearest import did_you_mean
from hostler.spec.project import Fleet, Project

AT_ONCE = 100  # tasks of an array that nobody has given a number
_HERE = Fleet(name="here", backend=HERE, slots=1)


def fleet_of(project: Project, on: str | None, url: str = "") -> Fleet:
    """`url`: of the store, where another one than the project's is meant."""
    name = on or project.fleet
    if name is not None and name in project.fleets:
        return owned(project, project.fleets[name], url)
    if name is None or name == "local":
        return replace(_HERE, workers=project.resources.nodes)
    if (wish := name.partition(":")[0]) in project.fleets:
        return owned(project, _machine(project.fleets[wish], name), url)
    known = ["local", *project.fleets]
    hint = did_you_mean(
        name, known, f"hostler.yaml has: {', '.join(project.fleets) or 'none'}; or --on local"
    )
    raise MissingError(f"no fleet named {name!r}", hint=hint)


def each_machine(engine: Backend, fleet: Fleet) -> Mapping[str, Fleet]:
    """Machines that a fleet leaves open, each as a fleet of its own, by short name."""
    return engine.machines(fleet) if isinstance(engine, Choosing) else {}


def _machine(fleet: Fleet, name: str) -> Fleet:
    """One machine of a wish: FLEET:MACHINE."""
    fleets = {one.name.lower(): one for one in each_machine(backend_of(fleet), fleet).values()}
    if name.lower() in fleets:
        return fleets[name.lower()]
    if not fleets:
        raise MissingError(
            f"no fleet named {name!r}: {fleet.name} names its machine", hint=f"--on {fleet.name}"
        )
    names = [one.name for one in fleets.values()]
    raise MissingError(
        f"no machine {name!r}", hint=did_you_mean(name, names, f"{fleet.name} has: {', '.join(names)}")
    )


def of_launch(project: Project, name: str) -> Fleet | None:
    """The project's fleet whose launches have this name in the store, or the machine of a wish."""
    for own, fleet in project.fleets.items():
        if slug(own) == name:
            return fleet
    for fleet in project.fleets.values():
        with suppress(UsageError):  # a wish that nothing fits now
            for one in each_machine(backend_of(fleet), fleet).values():
                if slug(one.name) == name:
                    return one
    return None


def on_name(name: str) -> str:
    """The name by which `--on` takes a fleet."""
    return "local" if name == _HERE.name else name


def sweep_fleet(project: Project, on: str | None, parallel: int | None, url: str = "") -> Fleet:
    """The fleet that is meant. This machine alone takes as many at once as the sweep allows, or as fit."""
    fleet = fleet_of(project, on, url)
    is_own = bool(fleet.scope)  # of hostler.yaml, whatever its name is
    return fleet if is_own else replace(fleet, slots=parallel)


def script_fleet(project: Project, on: str | None, parallel: int | None, script: Path) -> Fleet:
    """A fleet whose jobs are a person's own sbatch file."""
    fleet = fleet_of(project, on)
    takers = [name for name in BACKENDS if backend(name).capabilities.scripts]
    if on is None and fleet.backend not in takers:
        fleet = Fleet(name=takers[0], backend=takers[0], workers=parallel or AT_ONCE, scope=project.name)
    if fleet.backend not in takers:
        raise UsageError(
            f"-s takes an sbatch file, but fleet {fleet.name} is on {fleet.backend}", hint="leave --on out"
        )
    return replace(fleet, options={**fleet.options, "script": str(script.absolute())})


def engine_of(fleet: Fleet) -> Backend:
    """The backend of a fleet; one whose machines may be long in coming tells what it waits for."""
    found = backend_of(fleet)
    if isinstance(found, Cloud):
        found.say = say
    return found


def owned(project: Project, fleet: Fleet, url: str = "") -> Fleet:
    """The fleet as one of this project with its store, by which what it makes is known."""
    return replace(fleet, scope=project.name, store=url or env.store_url() or project.store)


def completed(engine: Backend, fleet: Fleet) -> Fleet:
    """The fleet with what its backend chooses where the file says nothing."""
    return engine.completed(fleet) if isinstance(engine, Cloud) else fleet


def is_there(engine: Backend, fleet: Fleet) -> bool:
    """Whether anything of a fleet is there. Machines that a group is about to make are."""
    if isinstance(engine, Cloud):
        return bool(engine.remains(fleet))
    return any(worker.alive for worker in engine.list(fleet))
