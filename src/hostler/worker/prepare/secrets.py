"""Secrets of this worker, read from the place that `--secrets WHERE` names.

    own:PATH                        a file of this machine, for this worker alone: its parent removes it
    file:PATH                       one for all workers of a launch: who sees that nothing is left removes it
    store:KEY                       an object of the store, for machines that have nothing of their own
    manager:PROJECT/PREFIX:A,B      a place that a platform has for them (`registry.SECRET_PLACES`)

They are held for the runs of this process. None is written, said, or put into an environment that processes
other than the runs' have. What cannot be found is one line, and the worker takes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hostler import env
from hostler.backends import privatefile, registry
from hostler.backends.privatefile import FILE, OWN
from hostler.errors import MachineError, MissingError
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import Queue
from hostler.spec.job import Job
from hostler.store import Store
from hostler.store.base import NotFound

STORE = "store:"
FILES = (OWN, FILE)


def open_file(where: str) -> None:
    """Before the store is opened: the keys to it may be in the file."""
    if where.startswith(FILES):
        kept = privatefile.read(Path(where.partition(":")[2]))
        env.adopt(kept.variables)
        env.hold(kept.secrets)


def open_rest(where: str, store: Store) -> None:
    """When the store has answered."""
    if where.startswith(STORE):
        env.hold(_from_store(store, where.removeprefix(STORE)))
    elif place := registry.secret_place(where):  # with a client that no other worker waits for
        env.hold(place.read(where.partition(":")[2]))
    elif where and not where.startswith(FILES):
        raise MachineError(
            f"--secrets {where.partition(':')[0]}: this version of hostler does not know this place",
            hint="another version started the launch: restart it with hostler down and hostler up",
        )


def close(where: str) -> None:
    """Nothing is left for any worker of this launch."""
    if where.startswith(FILES):
        privatefile.remove(Path(where.partition(":")[2]))
    elif place := registry.secret_place(where):
        place.forget(where.partition(":")[2])


def is_needed(store: Store, names: Sequence[str]) -> bool:
    """Whether something of these sweeps, or of all where none is named, is not over: whoever takes it needs
    the keys to the store, if not secrets of its own."""
    jobs = [sweeps.load(store, name) for name in names or sweeps.names(store)]
    return any(job.chooses or Queue(store, job).open(whole=True) for job in jobs)


def hidden(job: Job) -> list[str]:
    """Values that nothing of a run may show."""
    names = [*job.wanted, *job.notify.to]
    return list(env.secrets(names).values())


def check(job: Job) -> None:
    """MachineError if a run of it cannot have its secrets here."""
    missing = [name for name in job.wanted if not env.secret(name)]
    if missing:
        raise MachineError(
            f"the secret {missing[0]} is not set on this machine",
            hint="hostler up starts workers that have it; by hand: export it before `hostler worker`",
        )


def _from_store(store: Store, key: str) -> Mapping[str, str]:
    try:
        secrets: dict[str, str] = json.loads(store.get(key).data)["secrets"]
        return secrets
    except NotFound:
        raise MissingError(
            f"the secrets of this launch are gone: {key} was not found in {store.url}",
            "hostler down and hostler up start machines that have them",
        ) from None
