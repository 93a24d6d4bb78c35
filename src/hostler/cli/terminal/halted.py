"""A sweep of which nothing is taken at present: why, and what lifts that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hostler.cli.steer.acting import BY_A_PERSON
from hostler.records.body import Record
from hostler.records.rows import Row
from hostler.records.sweep import deadline, sweeps
from hostler.spec.states import QUEUED, RUNNING
from hostler.store import Store


def line(name: str, halt: Record) -> str:
    return f"{name} is halted ({halt['why']}); {way_out(name, halt)}"


def way_out(name: str, halt: Record) -> str:
    kind = halt.get("kind")
    if kind == BY_A_PERSON:
        return f"hostler resume {name} lifts it"
    if kind == deadline.WHY:
        return "allow more hours in its file, and submit it with -r"
    if kind == sweeps.UNLOGGED:
        return "name another metric in its file, or log it and submit the file with --rerun changed"
    return f"repair it and submit its file with -r, or hostler retry {name}"


def lines(store: Store, found: Sequence[Row], also: Iterable[str] = ()) -> list[str]:
    """A line for each sweep of these runs, and of `also`, that is halted with something left to do."""
    left = {row.sweep for row in found if row.state in (QUEUED, RUNNING)}
    names = dict.fromkeys((*also, *(row.sweep for row in found)))
    halts = [(name, sweeps.halted(store, name)) for name in names]
    return [line(name, h) for name, h in halts if h and (name in left or sweeps.load(store, name).chooses)]
