"""Finds the machine a person names: one of a fleet, with its fleet's settings, or any that ssh knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler.backends.base import Address, Cloud, Named
from hostler.backends.registry import BACKENDS, backend_of
from hostler.errors import UsageError
from hostler.fleet.fleet_choice import owned
from hostler.fleet.machines import key_folder
from hostler.remote import keypair
from hostler.remote.target import SshTarget, parse
from hostler.spec.project import Fleet, Project


def host_of(project: Project, name: str | None) -> SshTarget:
    """The host of this name; without one, the only machine. A fleet's name means its only machine."""
    known = [target for fleet in project.fleets.values() for target in _named(fleet)]
    clouds = dict(_clouds(project))
    if name is None:
        if len(known) + len(clouds) != 1:
            names = ", ".join([*map(str, known), *clouds]) or "none in hostler.yaml"
            raise UsageError("no host was named", hint=f"hosts: {names}")
        return known[0] if known else made_machine(project, *clouds.popitem()[1])
    fleet, _, machine = name.partition("/")
    if fleet in clouds:
        return made_machine(project, *clouds[fleet], machine)
    host = next((ssh_target for ssh_target in known if name in (str(ssh_target), ssh_target.host)), None)
    return host or _only_machine(project, name) or parse(name)


def _only_machine(project: Project, name: str) -> SshTarget | None:
    """The machine of a fleet of this name; None if it is not a fleet with named machines."""
    machines = _named(project.fleets[name]) if name in project.fleets else ()
    if len(machines) > 1:
        hosts = ", ".join(map(str, machines))
        raise UsageError(f"{name} has {len(machines)} machines", hint=f"name one of them: {hosts}")
    return machines[0] if machines else None


def entered(project: Project, name: str | None) -> Address | None:
    """A machine that is entered by a program of its platform; None: by ssh, as others are."""
    clouds = {known: one for known, one in _clouds(project) if not one[1].capabilities.by_ssh}
    fleet, _, machine = (name or "").partition("/")
    if name is None and len(project.fleets) == len(clouds) == 1:
        [fleet] = clouds
    if fleet not in clouds:
        return None
    meant, engine = clouds[fleet]
    address = engine.address(meant, machine)
    return address if address.command else None


def made_machine(project: Project, fleet: Fleet, engine: Cloud, machine: str = "") -> SshTarget:
    """A machine that a launch has made: its own key, and the keys by which it is known."""
    address = engine.address(fleet, machine)
    if address.command:
        raise UsageError(
            f"{address.name} is not reached by ssh", hint=f"hostler ssh {fleet.name}/{address.name}"
        )
    folder = key_folder(project)
    alias = address.name
    known = keypair.remember_host(folder, alias, address.host_keys)
    key = str(keypair.private_key(folder))
    return SshTarget(address.host, address.user, address.port, key, known=str(known), alias=alias)


def _named(fleet: Fleet) -> Sequence[SshTarget]:
    engine = backend_of(fleet) if fleet.backend in BACKENDS else None
    return engine.targets(fleet) if isinstance(engine, Named) else ()


def _clouds(project: Project) -> Iterator[tuple[str, tuple[Fleet, Cloud]]]:
    for name, fleet in project.fleets.items():
        engine = backend_of(fleet) if fleet.backend in BACKENDS else None
        if engine and engine.capabilities.makes_machines and isinstance(engine, Cloud):
            yield name, (owned(project, fleet), engine)
