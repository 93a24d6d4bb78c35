"""A sweep of which nothing is taken at present: why, and what lifts that."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from hostler.cli.steer.acting import BY_A_PERSON
from hostler.fleet.again import OVERWRITE
from hostler.records.body import Record
from hostler.records.rows import Row
from hostler.records.sweep import deadline, sweeps
from hostler.spec.states import PAUSED, QUEUED, RUNNING
from hostler.spec.units import show_duration
from hostler.store import Store


def line(store: Store, name: str, halt: Record) -> str:
    return f"{name} is halted ({halt['why']}); {way_out(store, name, halt)}"


def way_out(store: Store, name: str, halt: Record) -> str:
    """The step that lifts a halt, for a person."""
    kind = halt.get("kind")
    if kind == BY_A_PERSON:
        return f"hostler resume {name} continues it"
    if kind == deadline.WHY:
        return more_hours(store, name)
    if kind == OVERWRITE:
        return "submit its file again"
    if kind == sweeps.UNLOGGED:
        return "name another metric in its file, or log it and submit the file with --rerun changed"
    return f"repair it and submit its file with -r, or hostler retry {name}"


def more_hours(store: Store, name: str) -> str:
    """How much of its hours a sweep has used, since when, and what to raise them to."""
    from hostler.cli.look.status import resuming  # which shows halted sweeps

    job, used = sweeps.load_spec(store, name)[0], deadline.use(store, name)
    passed, since = (used.hours, used.began) if used else (0.0, time.time())
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(since))
    hours = f"{deadline.raised(job.budget.hours or 1, passed):g}"
    where, then = (job.file, resuming(store, name)) if job.file else ("its file", "hostler sweep -r FILE")
    return f"{show_duration(passed * 3600)} used since {when}; set hours: {hours} in {where}, then {then}"


def out_of_hours(store: Store, name: str) -> str:
    """Why a sweep whose hours are used up does not go on, and what to do; '' for every other sweep."""
    halt = sweeps.halted(store, name)
    held = halt is not None and halt.get("kind") == deadline.WHY
    return f"{halt['why']}; {more_hours(store, name)}" if halt and held else ""


def lines(store: Store, found: Sequence[Row], also: Iterable[str] = ()) -> list[str]:
    """A line for each sweep of these runs, and of `also`, that is halted with something left to do."""
    names = dict.fromkeys((*also, *(row.sweep for row in found)))
    halts = {name: halt for name in names if (halt := sweeps.halted(store, name))}
    timed = {name for name, halt in halts.items() if halt.get("kind") == deadline.WHY}
    left = {
        row.sweep
        for row in found
        if row.state in (QUEUED, RUNNING) or (row.state == PAUSED and row.sweep in timed)
    }
    return [
        line(store, name, halt)
        for name, halt in halts.items()
        if name in left or sweeps.load(store, name).chooses
    ]
