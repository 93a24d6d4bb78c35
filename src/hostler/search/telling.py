"""Builds the trials a search is told of, from a sweep's journal, ends and rungs. Pure.

A run that ended done counts with its values, by which `best` ranks it too. One that a pruner ended
or paused counts as far as it came. A failed one, or one that never logged what it is judged by, counts as
failed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from hostler.frozen import dataclass
from hostler.search.base import Rungs, Trial, score
from hostler.spec.ranking import HasGoal, value_of

LIVE, HELD, PAUSED, PRUNED, DONE, FAILED = "live", "held", "paused", "pruned", "done", "failed"
OPEN = (LIVE, HELD)  # queued or running; paused by a person


class Given(Protocol):
    """The parameters and picks given to a trial."""

    @property
    def picks(self) -> Mapping[str, Any]: ...

    @property
    def attrs(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Facts:
    """Facts in the store on a sweep's runs. `open` are those that have not ended, `paused` by a pruner,
    `held` by a person; `ends` may hold more. The values in `rungs` are as logged."""

    ends: Mapping[str, Mapping[str, Any]]
    rungs: Rungs = field(default_factory=dict)
    open: Collection[str] = ()
    paused: Collection[str] = ()
    held: Collection[str] = ()


def trials(
    given: Sequence[Given],
    runs: Sequence[str],
    facts: Facts,
    objectives: Sequence[HasGoal],
    known: Sequence[Trial] = (),
) -> list[Trial]:
    """Trial n is what entry n of the journal gave to run n. `known`: the trials of last time; what has not
    changed is the very same."""
    found = []
    for n, (entry, run) in enumerate(zip(given, runs, strict=True)):
        end = None if run in facts.open else facts.ends.get(run)
        old = known[n] if n < len(known) else None
        if old is not None and end is not None and old.end is end and not facts.rungs:
            found.append(old)
            continue
        values = values_of(end, objectives) if end else None
        curve = {level: here[run] for level, here in sorted(facts.rungs.items()) if run in here}
        state = HELD if run in facts.held else _state(end, values, run in facts.paused, curve)
        found.append(Trial(n, run, state, entry.picks, entry.attrs, values, curve, end))
    return found


def values_of(end: Mapping[str, Any], objectives: Sequence[HasGoal]) -> tuple[float, ...] | None:
    """The value of each objective that a run is ranked by; None unless it has a number for all."""
    found = [value_of(end, objective) for objective in objectives]
    return tuple(found) if found and all(map(math.isfinite, found)) else None


def scores(rungs: Mapping[int, Mapping[str, float]], goal: str) -> dict[int, dict[str, float]]:
    """The rungs, turned so that more is better."""
    return {level: {run: score(v, goal) for run, v in here.items()} for level, here in rungs.items()}


def _state(
    end: Mapping[str, Any] | None, values: tuple[float, ...] | None, paused: bool, curve: Mapping[int, float]
) -> str:
    if end is None:
        return PAUSED if paused and curve else LIVE
    if end.get("state") == "done":
        return DONE if values is not None else FAILED
    if end.get("state") == "pruned" and values is not None:
        return PRUNED if curve else DONE  # without rungs it was its own curve that ended it: it is complete
    return FAILED
