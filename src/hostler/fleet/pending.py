"""Tells whether anything will still happen in a sweep, for a person who waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hostler.records.launch import serving
from hostler.records.rows import Row
from hostler.records.run.log import CAP, RUNG
from hostler.records.sweep import sweeps
from hostler.records.sweep.ends import EndReader
from hostler.records.sweep.queue import Queue
from hostler.records.sweep.rungs import RungReader
from hostler.search import telling
from hostler.search.pruners import pruner
from hostler.search.search import without
from hostler.spec import pruning
from hostler.spec.job import Job
from hostler.spec.states import DONE, PAUSED, PRUNED, QUEUED, RUNNING
from hostler.store import Store


def goes_on(store: Store, found: Sequence[Row], names: Iterable[str] = ()) -> bool:
    """Whether one of these runs is running or will be taken, or their sweeps, and `names`, want more. Of a
    halted sweep nothing is taken, nor of one whose workers have all gone at a cap: what is queued there, or
    lost, waits for a person; so does a run whose script by hand is dead."""
    if any(row.state == RUNNING and not row.stale for row in found):
        return True
    waiting = {row.sweep for row in found if row.state in (QUEUED, RUNNING) and not row.lost}
    capped = _capped(store, found)
    if any(not sweeps.halted(store, name) for name in waiting - capped):
        return True
    return any(pending(store, name) for name in {*names, *(row.sweep for row in found)} - capped)


def why_over(store: Store, name: str, found: Sequence[Row]) -> str:
    """Why nothing more of a sweep, whose runs these are, is taken until a person wants it; '' if some is."""
    if any(row.state == RUNNING and not row.stale for row in found):
        return ""
    return sweeps.why_halted(store, name, _pass) or (
        "a cap ended its workers" if _capped(store, found) else ""
    )


def _pass(line: str) -> None:
    """A halt that cannot be read holds all the same."""


def _capped(store: Store, found: Sequence[Row]) -> set[str]:
    """Sweeps that a cap has ended the workers of: a run was set aside by it, and nobody serves them."""
    names = {row.sweep for row in found if row.state == PAUSED and row.paused_by == CAP}
    now = serving.look(store) if names else None
    return {name for name in names if now and not now.serves(name)}


def pending(store: Store, name: str) -> bool:
    """Not while the sweep is halted: then nobody starts anything of it."""
    job = sweeps.load(store, name)
    if not (job.search or job.prune) or sweeps.halted(store, name):
        return False
    return job.chooses or _promotes(store, job)


def _promotes(store: Store, job: Job) -> bool:
    chosen = pruning.parse(job.prune or None)
    found = pruner(chosen) if chosen and job.looked_at else None
    if found is None or not found.pauses:
        return False
    opens = Queue(store, job).open(whole=True)
    paused = [run.key.run for run in opens if run.state.state == PAUSED and run.state.paused_by == RUNG]
    ends = EndReader(store, job.name).update() if paused else {}
    failed = {run for run, end in ends.items() if end.get("state") not in (DONE, PRUNED)}
    rungs = telling.scores(RungReader(store, job.name, job.searched_from).update(), job.looked_at[0].goal)
    return found.promote(without(rungs, failed), paused, over=len(paused) == len(opens)) is not None
