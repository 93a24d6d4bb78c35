"""Launches of fleets whose machines come with them: one that is there takes more sweeps, else another begins.

The order is that of the protocol's closing of a fleet: the runs are in the store already, the launch is told
to serve their sweep, and then it is looked at whether it was closed meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from hostler.backends.base import Launch
from hostler.fleet.funding import Funded
from hostler.records import closing, generations, heartbeats
from hostler.records.generations import Generation
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.project import Fleet
from hostler.store import Store

LEAST = 600.0  # seconds that a launch must have left to be given more work


def joinable(store: Store, fleet: Fleet, jobs: Sequence[Job], shape: str) -> Generation | None:
    """The launch that can take these sweeps, too: its machines are of this shape, and their money is agreed on."""
    found = generations.of_fleet(store, slug(fleet.name))
    if not found:
        return None
    one, now = found[-1], heartbeats.store_time(store)
    if one.deadline is not None and one.deadline - now < LEAST:
        return None
    if any(job.budget.cost is not None and job.name not in one.reserved for job in jobs):
        return None
    over = closing.is_closed(store, one.fleet, one.number) or generations.gone_at(
        store, one.fleet, one.number
    )
    if over or not one.launch or not closing.has_shape(store, one.fleet, one.number, shape):
        return None
    return one


def joined(one: Generation) -> Funded:
    return Funded(one.name, one.deadline, one.began, one.reserved)


def shape_of(fleet: Fleet, launch: Launch) -> str:
    """What must be equal for two launches to share their machines."""
    told = [dict(fleet.options), fleet.slots, fleet.runs_per_worker, list(launch.parcels), launch.store]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]
