"""Checks before submission that the machines of a fleet answer, and how each reaches the store.

A machine that has the store's folder uses it as one. A folder that a machine can't see is refused. A bucket's
driver is collected for each machine's Python. Where all machines share this one's disk only the
engine is asked whether it is there.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from hostler import env, settings
from hostler.backends.base import Backend, MachineInfo, Question
from hostler.errors import HostError, HostUnreachable, MachineError, UsageError
from hostler.fleet import library
from hostler.frozen import dataclass
from hostler.spec.project import Fleet
from hostler.store import Store
from hostler.store.registry import BUCKETS, is_folder

WAYS_OUT = (
    "use a bucket (store: s3://bucket/runs), a folder that all of them share, "
    "or one of them as the store (store: ssh://HOST/path)"
)


@dataclass(frozen=True)
class Readiness:
    """The way to the store for each machine that answered."""

    folders: dict[str, str] = field(default_factory=dict)
    wheels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    machines: dict[str, MachineInfo] = field(default_factory=dict)


def ready(engine: Backend, fleet: Fleet, store: Store) -> Readiness:
    """Ask every machine; UsageError for a store they can't see, HostError if none of them will do."""
    if engine.capabilities.shares_disk:
        _those_up(engine.survey(fleet, Question()))
        return Readiness()
    folder = folder_of(store.url)
    with sign(store, folder) as path:
        machines = _those_up(engine.survey(fleet, Question(path=path)))
    if is_folder(store.url):
        blind = [machine.host for machine in machines if not machine.sees]
        if blind:
            raise UsageError(f"{', '.join(blind)} cannot see the store's folder {store.url}", hint=WAYS_OUT)
    folders = {machine.host: folder_at(machine, folder) for machine in machines if machine.sees}
    wheels = drivers(store, machines, in_image=engine.capabilities.makes_machines)
    return Readiness(folders, wheels, {machine.host: machine for machine in machines})


def scheme_of(url: str) -> str:
    return url.partition("://")[0]


def folder_of(url: str) -> str:
    """The path by which a machine that has the store's folder sees it, perhaps from its home (~/runs); ''
    for a bucket."""
    if is_folder(url):
        return url
    if scheme_of(url) != "ssh":
        return ""
    from hostler.remote.target import split_store

    return split_store(url)[1]


def folder_at(machine: MachineInfo, folder: str) -> str:
    """The same path where a home is known."""
    return machine.home + folder[1:] if folder.startswith("~/") else folder


def drivers(
    store: Store, machines: Sequence[MachineInfo], *, in_image: bool = False
) -> dict[str, tuple[str, ...]]:
    """host → wheels that a worker on a bucket needs there; they are kept in the store by hash.

    `in_image`: a driver that cannot be had here may be in the machines' image, whose first step looks."""
    if scheme_of(store.url) not in BUCKETS:
        return {}
    from hostler.remote import wheels  # with what packs them: only for buckets

    targets = {m.host: wheels.machine(m.python, m.platform) for m in machines}
    try:
        files = {target: wheels.drivers_for(target, env.cache_dir()) for target in set(targets.values())}
    except MachineError as error:
        if not in_image:
            raise
        say(f"{error.message}; it must be in the image: {error.hint}")
        return {}
    for file in {file for some in files.values() for file in some}:
        library.bring_wheel(store, Path(file))
    return {host: tuple(str(file) for file in files[wheel_target]) for host, wheel_target in targets.items()}


def variables(store: Store) -> dict[str, str]:
    """Variables given to workers elsewhere: settings, ports, the way into the bucket."""
    return {**settings.given(), **env.ports_given(), **env.credentials(scheme_of(store.url))}


def left_out(host: str, why: str) -> None:
    say(f"{host} is left out: {why}; hostler up starts it when it is back")


def say(line: str) -> None:
    """To whoever waits for workers; a program's output stays its own."""
    print(f"hostler: {line}", file=sys.stderr, flush=True)


@contextmanager
def sign(store: Store, folder: str) -> Iterator[str]:
    """A file in the store by which a machine knows that it sees the very same folder."""
    if not folder:
        yield ""
        return
    key = f"probe/{secrets.token_hex(8)}"
    store.put(key, b"here")
    try:
        yield f"{folder.rstrip('/')}/{key}"
    finally:
        store.delete(key)


def _those_up(machines: Sequence[MachineInfo]) -> list[MachineInfo]:
    up = [machine for machine in machines if not machine.problem]
    down = [machine for machine in machines if machine.problem]
    if not up and len(down) == 1:
        raise HostError(down[0].problem, down[0].hint)
    if not up and down:
        text = "; ".join(machine.problem for machine in down)
        raise HostUnreachable(
            f"none of the {len(down)} hosts can be used: {text}", "hostler doctor checks them again"
        )
    for machine in down:
        left_out(machine.host, machine.problem)
    return up
