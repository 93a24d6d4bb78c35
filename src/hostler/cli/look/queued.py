"""Summarises a project's workers in the queues of shared engines: how many run, how many wait, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from hostler.backends.base import Backend, WorkerInfo
from hostler.backends.registry import BACKENDS, backend_of
from hostler.errors import HostlerError
from hostler.fleet.fleet_choice import fleet_of
from hostler.records.body import Record
from hostler.records.launch import serving
from hostler.spec.names import slug
from hostler.spec.project import Project
from hostler.store import Store

RUNS, SILENT = "runs", "started, no sign of life yet"


def lines(project: Project, store: Store, say: Callable[[str], None]) -> list[str]:
    """A line for each fleet with workers in a queue; an engine that does not answer is a line, too."""
    beats: Collection[Record] | None = None  # of living workers, read where somebody seems to run
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
            workers = [
                worker_info
                for worker_info in listed
                if worker_info.alive or worker_info.detail.startswith("failed")
            ]
        except HostlerError as error:
            found.append(f"{name}: {error.message}")
            continue
        if workers:
            if beats is None and any(worker.detail == RUNS for worker in workers):
                beats = serving.look(store, say).fresh.values()
            found.append(f"{name}: {summed_up(workers, beating(slug(name), beats or ()))}")
    return found


def beating(fleet: str, beats: Iterable[Record]) -> int:
    """How many living workers may be of this fleet: by its name, or without any. Pure."""
    return sum(str(beat.get("fleet") or fleet).partition("/")[0] == fleet for beat in beats)


def summed_up(workers: Sequence[WorkerInfo], beating: int) -> str:
    """`2 run, 30 wait: as many of its array run as `workers` allows (JobArrayTaskLimit)`. A worker runs
    once it has beaten. Pure."""
    counts = Counter[str]()
    for worker in workers:
        counts[worker.detail] += worker.count
    if silent := max(0, counts[RUNS] - beating):
        counts[RUNS] -= silent
        counts[SILENT] = silent
    counts = +counts
    parts = [f"{n} {'wait' if text.startswith('waits') else 'run' if text == RUNS else text}" +
             (f": {text.removeprefix('waits: ')}" if text.startswith("waits") else "")
             for text, n in sorted(counts.items())]  # fmt: skip
    return ", ".join(parts)
