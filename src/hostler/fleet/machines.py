"""Launches of fleets that make their machines: a running launch takes more sweeps, else a new one begins.

The order is that of the protocol's closing of a fleet: the runs are in the store already, the launch is told
to serve their sweep, and then it is looked at whether it was closed meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hostler import env, settings
from hostler.backends.base import Backend, Cloud, Launch, Thing
from hostler.errors import CloudError, MachineError, StoreError
from hostler.fleet import library, secrets
from hostler.fleet.ready import say
from hostler.money import funding
from hostler.money.tariff import Funded
from hostler.records import layout
from hostler.records.launch import closing, launches, settlement
from hostler.records.launch.launches import Generation
from hostler.records.packs.packed_store import open_at
from hostler.records.run import heartbeats
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.remote import keypair
from hostler.remote.library_zip import own_zip, sha_of
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.project import Fleet, Project
from hostler.spec.states import QUEUED, RUNNING
from hostler.store import Store

LEAST = 600.0  # seconds that a launch must have left to be given more work

Parcels = tuple[tuple[str, str], ...]


def agree(
    store: Store, fleet: Fleet, jobs: Sequence[Job], shape: str, fund: Callable[[], Funded], most: int = 0
) -> tuple[Funded, bool]:
    """The launch that will serve these sweeps, and whether it is a new one. `most`: workers that it may grow
    to."""
    while True:
        generation = joinable(store, fleet, jobs, shape, most)
        funded = (
            Funded(generation.name, generation.deadline, generation.began, generation.reserved)
            if generation
            else fund()
        )
        place = launches.named(funded.name)
        if place is None:
            raise AssertionError("a launch of machines is always counted")
        try:
            closing.has_shape(store, *place, shape)
            if closing.serve(store, *place, [job.name for job in jobs]):
                return funded, generation is None
        except BaseException:
            if generation is None:  # nobody will make its machines
                with suppress(StoreError):
                    funding.cancel(store, funded, settings.timing())
            raise


def taken_down(store: Store, funded: Funded, names: Sequence[str]) -> CloudError | None:
    """The error for a launch without machines that was closed before its runs had ended."""
    place = launches.named(funded.name)
    if place is None or not (closing.is_closed(store, *place) or launches.gone_at(store, *place)):
        return None
    jobs = [sweeps.load(store, name) for name in names if not sweeps.halted(store, name)]
    waiting = [job.name for job in jobs if any(_waits(run) for run in Queue(store, job).open(whole=True))]
    if not waiting:
        return None
    return CloudError(
        f"{funded.name} was taken down while it was being made, and runs of {' '.join(waiting)} wait",
        "run the same command again to start it; hostler down or its deadline may have ended it",
    )


def _waits(run: OpenRun) -> bool:
    return run.state.state in (QUEUED, RUNNING)


def joinable(store: Store, fleet: Fleet, jobs: Sequence[Job], shape: str, most: int = 0) -> Generation | None:
    """The launch that can take these sweeps, too: of this shape, their money agreed on for so many workers,
    and with time."""
    generations = [
        generation for generation in launches.of_fleet(store, slug(fleet.name)) if not generation.by_hand
    ]
    one = generations[-1] if generations else None
    if one is None or not is_open(store, one.fleet, one.number, LEAST):
        return None
    if one.workers < max(fleet.workers, most):  # to make it larger would cost more than was agreed on
        return None
    if any(job.budget.cost is not None and job.name not in one.reserved for job in jobs):
        return None
    return one if closing.has_shape(store, one.fleet, one.number, shape) else None


def is_open(store: Store, fleet: str, number: int, least: float = 0.0) -> bool:
    """Whether a launch is neither closed nor gone, and has so many seconds left."""
    generation = launches.read(store, fleet, number)
    if generation is None or not generation.launch or launches.gone_at(store, fleet, number) is not None:
        return False
    late = generation.deadline is not None and generation.deadline - heartbeats.store_time(store) < least
    return not late and not closing.is_closed(store, fleet, number)


def prepare(store: Store, project: Project, engine: Backend, fleet: Fleet) -> None:
    """Before a launch: hostler and a key for hand work are there for its machines, and nothing is left of
    launches before it."""
    library.bring(store)
    ssh_key(project, make=True)
    sweep_up(store, engine, fleet)


def sweep_up(store: Store, engine: Backend, fleet: Fleet) -> None:
    """Remove what launches that are over have left: the last VM may have been taken away in the middle."""
    if not isinstance(engine, Cloud):
        return
    name = slug(fleet.name)
    found = over(
        engine.remains(fleet),
        gone=lambda number: launches.gone_at(store, name, number) is not None,
        closed=lambda number: closing.is_closed(store, name, number),
    )
    if found:
        engine.remove(fleet, found)


def over(
    found: Sequence[Thing], *, gone: Callable[[int], bool], closed: Callable[[int], bool]
) -> list[Thing]:
    """Things of a fleet that no launch needs: all of one that is gone, the templates of a closed
    one that has neither VMs nor groups. Pure."""
    numbers = {int(thing.generation) for thing in found if thing.generation.isdigit()}
    dead = {number for number in numbers if gone(number)}
    working = {int(thing.generation) for thing in found if thing.generation.isdigit() and thing.works}
    dead |= {number for number in numbers - working if closed(number)}
    return [thing for thing in found if thing.generation.isdigit() and int(thing.generation) in dead]


def shape_of(fleet: Fleet, url: str, parcels: Parcels, secrets: Sequence[str] = ()) -> str:
    """The settings that must be equal for two launches to share their machines."""
    told: list[object] = [dict(fleet.options), fleet.slots, fleet.runs_per_worker, fleet.cache]
    told += [list(parcels), url]
    told += [list(secrets)] if secrets else []
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]


def parcels_of(wheels: Mapping[str, Sequence[str]]) -> Parcels:
    """Files that a bare machine takes from the store: hostler itself, and its store's driver."""
    own = own_zip().sha
    files = sorted({file for files in wheels.values() for file in files})
    shas = [sha_of(Path(file).read_bytes()) for file in files]
    return ((layout.library(own), own), *((layout.wheel(sha), sha) for sha in shas))


def shape_for(
    project: Project, fleet: Fleet, url: str, wheels: Mapping[str, Sequence[str]], jobs: Sequence[Job]
) -> str:
    """The shape of machines for these sweeps: those that share them have the very same secrets."""
    values = env.secrets(secret for job in jobs for secret in job.wanted)
    marks = secrets.marks(values, key_folder(project))
    return shape_of(fleet, url, parcels_of(wheels), marks)


def equipped(launch: Launch, project: Project) -> Launch:
    """The launch with all that bare machines are told and given."""
    return replace(
        launch,
        at=launch.at or time.time(),
        parcels=parcels_of(launch.wheels),
        ssh_key=ssh_key(project, make=False),
        variables={**launch.variables, **settings.given(), **env.ports_given(), **emulated()},
    )


def emulated() -> dict[str, str]:
    """Where emulators are, for machines that are emulated as well."""
    found = {env.CLOUD_ENDPOINT: env.cloud_endpoint(), "STORAGE_EMULATOR_HOST": env.gcs_emulator()}
    return {name: value for name, value in found.items() if value}


def key_folder(project: Project) -> Path:
    return env.cache_dir() / "keys" / slug(project.name)


def ssh_key(project: Project, *, make: bool) -> str:
    """The public key for hand work; '' where there is none, and none can be made."""
    folder = key_folder(project)
    try:
        return keypair.public_key(folder) if make or keypair.private_key(folder).is_file() else ""
    except MachineError:
        return ""


def close_all(url: str, fleet: Fleet) -> None:
    """No launch of the fleet takes more sweeps. A store that is silent keeps nobody from removing it."""
    _each(url, fleet, lambda store, one: closing.close(store, one.fleet, one.number))


def settle_all(url: str, fleet: Fleet) -> None:
    """Nothing of the fleet is left: what its launches have not spent goes back."""
    _each(url, fleet, lambda store, one: settlement.close(store, one, settings.timing()))


def _each(url: str, fleet: Fleet, act: Callable[[Store, Generation], None]) -> None:
    try:
        store = open_at(url)
        for generation in launches.of_fleet(store, slug(fleet.name)):
            if launches.gone_at(store, generation.fleet, generation.number) is None:
                act(store, generation)
    except StoreError as error:
        say(str(error))
