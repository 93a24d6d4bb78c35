"""A larger GPU for a run that was out of memory: whether one may come, and what its sweep learns from that.

A run moves to a larger GPU once; out of memory there, too, it fails. Whether a larger one may come is asked
of the store: a worker that serves the sweep has one, or the launch of this worker may still get one. Where
none is done on GPUs of that size, the sweep's other runs pass them by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hostler.errors import DamagedError, NewerFormatError
from hostler.records.body import Record
from hostler.records.launch import launches, serving
from hostler.records.run.log import RunKey
from hostler.records.sweep import outgrown_gpus
from hostler.records.sweep.ends import EndReader
from hostler.spec.job import LARGER, Job
from hostler.store import Store
from hostler.worker.claim.slots import Placement


def too_small(store: Store, job: Job, key: RunKey, placement: Placement, size: int, launch: str) -> int:
    """Bytes that a run found too few, where it may get more; else 0. A part of a GPU gives way to a whole
    one. The sweep remembers a whole one that was too small."""
    if not size or job.auto:  # of a measured sweep fewer are put on one GPU
        return 0
    if placement.share < 1:
        return int(size * placement.share)
    try:
        if not larger_comes(size, _rooms(store, job.name), _largest_of(store, launch)):
            return 0
        ends = EndReader(store, key.sweep).update().values()
        if outgrown_gpus.is_too_small(size, ends):
            outgrown_gpus.learn(store, key.sweep, job.source.mark, size, key.run)
        return size
    except (DamagedError, NewerFormatError):  # its budget of failures has to do
        return 0


def larger_comes(size: int, rooms: Iterable[Mapping[str, Any]], largest: int) -> bool:
    """Whether a GPU with more memory is there or may come. `rooms`: those of workers that serve the sweep;
    `largest`: of this worker's launch. Pure."""
    there = ((room.get("gpu_memory") or 0) / room["gpus"] for room in rooms if room.get("gpus"))
    return any(one >= size * LARGER for one in (*there, largest))


def _rooms(store: Store, sweep: str) -> list[Record]:
    beats = serving.look(store, lambda line: None).fresh.values()
    return [beat["room"] for beat in beats if beat.get("room") and sweep in (beat.get("only") or [sweep])]


def _largest_of(store: Store, launch: str) -> int:
    place = launches.named(launch)
    generation = launches.read(store, *place) if place else None
    return generation.gpu_memory if generation else 0
