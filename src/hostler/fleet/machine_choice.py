"""The machines that a fleet leaves open: which there are, and what runs have shown of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hostler.backends.base import OUTGROWN, PACES, Informed, MachinePaces
from hostler.fleet import fleet_choice
from hostler.fleet.launcher import Launcher
from hostler.records.sweep import measured_rates, outgrown_gpus, sweeps
from hostler.records.sweep.queue import Queue
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.store import Store


def as_learned(workers: Launcher, store: Store, jobs: Sequence[Job]) -> Launcher:
    """The launcher with what these sweeps have shown of machines, where its backend chooses them: GPUs that
    were too small for all their open runs, and what a run of the only one takes on each machine."""
    if not isinstance(workers.engine, Informed) or not jobs:
        return workers
    size = min(_outgrown(store, job) for job in jobs)
    paces = _paces(workers, store, jobs[0]) if len(jobs) == 1 else None
    known = {**workers.fleet.known, OUTGROWN: size, **({PACES: paces} if paces else {})}
    return replace(workers, fleet=replace(workers.fleet, known=known))


def each_machine(workers: Launcher, store: Store) -> list[Launcher]:
    """The launcher of each machine that the fleet leaves open, the cheapest first; none if it names one."""
    every = fleet_choice.each_machine(workers.engine, workers.informed(store))
    return [replace(workers, fleet=fleet) for fleet in every.values()]


def scouted(workers: Launcher) -> list[Launcher]:
    """The launcher of each machine that the fleet leaves open and scouts compared."""
    paces: MachinePaces | None = workers.fleet.known.get(PACES)
    if paces is None or len(paces.seconds) < 2:
        return []
    every = fleet_choice.each_machine(workers.engine, workers.fleet)
    return [replace(workers, fleet=fleet) for name, fleet in every.items() if name in paces.seconds]


def _outgrown(store: Store, job: Job) -> int:
    """Bytes of a GPU that was too small for every open run of a sweep; 0 where none was."""
    if not sweeps.is_there(store, job.name):
        return 0
    stored = sweeps.load_spec(store, job.name)[0]
    known = outgrown_gpus.largest(store, job.name, stored.source.mark)
    runs = Queue(store, stored).open()
    return max(known, min((run.state.outgrew for run in runs), default=0))


def _paces(workers: Launcher, store: Store, job: Job) -> MachinePaces | None:
    """Seconds of a run on each machine that the fleet leaves open and a scout measured; of a thousand steps
    where the length of a run is not known."""
    known = {rate.fleet: rate for rate in measured_rates.every(store, job.name)}
    if not known:
        return None
    machines = fleet_choice.each_machine(workers.engine, workers.fleet)
    slugs = {name: slug(one.name) for name, one in machines.items()}
    rates = {name: known[own] for name, own in slugs.items() if own in known}
    if all(rate.seconds is not None for rate in rates.values()):
        return MachinePaces("a run", {name: (one.seconds or 0.0) / one.seats for name, one in rates.items()})
    return MachinePaces("1000 steps", {name: 1000 / one.rate / one.seats for name, one in rates.items()})
