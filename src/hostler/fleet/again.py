"""Submits runs of a sweep again, and removes a sweep in favour of another of its name."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hostler import settings
from hostler.errors import UsageError
from hostler.records.body import Record
from hostler.records.launch import serving
from hostler.records.rows import Row, rows
from hostler.records.run import control
from hostler.records.sweep import deadline, sweeps
from hostler.spec.job import Job, source_facts
from hostler.spec.states import DIVERGED, DONE, ENDED, FAILED, PAUSED, PRUNED, QUEUED, RUNNING, STOPPED
from hostler.store import Store

BY = "hostler sweep"
OVERWRITE = "overwrite"  # the kind of a halt: a new submission takes the sweep's place
SETTLE = 1.5  # times what a worker may go by of a sweep that has changed: then nobody does


def is_undone(row: Row) -> bool:
    """Neither done nor live: it failed, was stopped or set aside, or its worker is lost."""
    if row.state == RUNNING:
        return row.stale
    return row.state not in (DONE, PRUNED, QUEUED)


def is_changed(row: Row, code: str) -> bool:
    """Finished, by other code than this."""
    return row.state == DONE and row.code != code


def reopen(store: Store, job: Job, chosen: Sequence[Row]) -> int:
    """Queue these again: what was stopped goes on as it was, what failed with the job's code, what was done
    from the beginning. Returns how many were."""
    done = sum(_reopen(store, job, row) in control.DONE_SO for row in chosen)
    if done:
        sweeps.lift(store, job.name)
    return done


def _reopen(store: Store, job: Job, row: Row) -> str:
    if row.state in (STOPPED, PAUSED):
        return control.resume(store, row.key, by=BY)
    fresh = row.state == DONE
    return control.retry(store, row.key, by=BY, source=source_facts(job.source), fresh=fresh, lost=row.stale)


def lift_if_allowed(store: Store, job: Job) -> None:
    """After a submission: hours that are over no longer, or a metric that may be another now, do not hold it
    up. Workers halt it again if nothing has changed."""
    deadline.lift_if_allowed(store, job)
    halt = sweeps.halted(store, job.name)
    if halt and (halt.get("kind") in (sweeps.UNLOGGED, OVERWRITE) or _is_left_over(store, job.name, halt)):
        sweeps.lift(store, job.name)


def lift_if_asked(store: Store, job: Job) -> None:
    """After a program has asked for calls again: errors that halted them before do not hold them up."""
    lift_if_allowed(store, job)
    halt = sweeps.halted(store, job.name)
    if halt and "kind" not in halt:
        sweeps.lift(store, job.name)


def _is_left_over(store: Store, name: str, halt: Record) -> bool:
    """Whether errors halted it, of runs that all lie in the trash."""
    return "kind" not in halt and not rows(store, [name], touched=True)


def failed_only(found: Sequence[Row]) -> int | None:
    """How many of these runs failed; None if the others hold something: a result, or a training under way.
    Runs in the trash, and those that no worker has had, hold nothing. Pure."""
    ours = [row for row in found if not row.trashed and (row.attempt or row.state not in (QUEUED, STOPPED))]
    return len(ours) if all(row.state in (FAILED, DIVERGED) for row in ours) else None


def put_away(
    store: Store, name: str, pause: Callable[[float], None] = time.sleep, *, failed: bool = False
) -> int:
    """All that was started of a sweep to the trash; refused while something of it runs. Nothing more of it
    is taken from here on until the sweep is lifted. Returns how many runs went. `failed`: refused, too, if a
    run holds something."""
    halted = sweeps.halted(store, name) is not None
    sweeps.halt(store, name, "its place is taken by a new submission", kind=OVERWRITE)
    if not halted and serving.look(store).serves(name):
        pause(SETTLE * settings.timing().fresh)
    found = rows(store, [name], touched=True)
    if failed and failed_only(found) is None:
        if not halted:
            sweeps.lift(store, name)
        raise UsageError(f"runs of {name} go on again", hint=f"hostler status {name}, then submit it again")
    live = [row.name for row in found if row.state == RUNNING]
    for row in found:
        if not live and row.state not in ENDED and control.stop(store, row.key, by=BY) not in _STOPPED:
            live.append(row.name)
    if live:
        if not halted:
            sweeps.lift(store, name)
        raise UsageError(
            f"{len(live)} of its runs are running ({', '.join(live[:3])})",
            hint=f"first hostler stop {name}, and wait until they have saved",
        )
    for row in found:
        sweeps.put_in_trash(store, name, row.id)
    return len(found)


_STOPPED = ("stopped", *(f"already {state}" for state in ENDED))
