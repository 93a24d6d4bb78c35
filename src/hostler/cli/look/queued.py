"""Summarises a project's workers in the queues of shared engines: how many run, how many wait, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hostler.backends.base import Backend, WorkerInfo
from hostler.backends.registry import BACKENDS, backend_of
from hostler.errors import HostlerError
from hostler.fleet.fleet_choice import fleet_of
from hostler.spec.project import Project


def lines(project: Project) -> list[str]:
    """A line for each fleet with workers in a queue; an engine that does not answer is a line, too."""
    found, engines = [], dict[tuple[str, object, object, str | None], Backend]()
    for name, fleet in project.fleets.items():
        if fleet.backend not in BACKENDS:
            continue
        which = (fleet.backend, fleet.options.get("login"), fleet.options.get("context"), fleet.cache)
        engine = engines.get(which) or engines.setdefault(which, backend_of(fleet))  # asked once for all
        if not engine.capabilities.tells:
            continue
        try:
            listed = engine.list(fleet_of(project, name))
            workers = [one for one in listed if one.alive or one.detail.startswith("failed")]
        except HostlerError as error:
            found.append(f"{name}: {error.message}")
            continue
        if workers:
            found.append(f"{name}: {summed_up(workers)}")
    return found


def summed_up(workers: Sequence[WorkerInfo]) -> str:
    """`2 run, 30 wait: as many of its array run as `workers` allows (JobArrayTaskLimit)`."""
    counts = Counter[str]()
    for worker in workers:
        counts[worker.detail] += worker.count
    parts = [f"{n} {'wait' if said.startswith('waits') else 'run' if said == 'runs' else said}" +
             (f": {said.removeprefix('waits: ')}" if said.startswith("waits") else "")
             for said, n in sorted(counts.items())]  # fmt: skip
    return ", ".join(parts)
