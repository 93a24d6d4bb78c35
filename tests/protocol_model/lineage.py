"""Which metric points a reader shows, and which checkpoints stem from which."""

from __future__ import annotations

from protocol_model.rules import Rules
from protocol_model.world import NOWHERE, First, Place, Run


def descends(sources: frozenset[First], place: Place, ancestor: Place) -> bool:
    """Is `ancestor` the checkpoint `place` itself or one it stems from?"""
    came_from = {first.attempt: first.source for first in sources}
    while place != NOWHERE:
        if place[0] == ancestor[0]:
            return place[1] >= ancestor[1]
        place = came_from.get(place[0], NOWHERE)
    return ancestor == NOWHERE


def shown(run: Run, rules: Rules) -> list[Place]:
    """What a reader makes of the fragments in the store, in no particular order."""
    if not rules.chain_reading:
        return sorted(run.points)
    named = {first.attempt: first.source for first in run.firsts}
    if not rules.first_fragment_names_source:
        named = _guessed(run)
    return chain(run, named, max(named, default=0), None)


def chain(run: Run, named: dict[int, Place], attempt: int, upto: int | None) -> list[Place]:
    """The points of `attempt` (up to a step), and of those it went on from."""
    found: list[Place] = []
    while attempt:
        found += [p for p in run.points if p[0] == attempt and (upto is None or p[1] <= upto)]
        attempt, upto = named.get(attempt, NOWHERE)
    return found


def _guessed(run: Run) -> dict[int, Place]:
    """Without names: each attempt seems to go on where the one before it had come to."""
    attempts = sorted(first.attempt for first in run.firsts)
    guess: dict[int, Place] = {}
    for before, attempt in zip([0, *attempts], attempts, strict=False):
        own = [step for n, step in run.points if n == attempt]
        reached = max((step for n, step in run.points if n == before), default=0)
        guess[attempt] = (before, min(reached, min(own) - 1) if own else reached) if before else NOWHERE
    return guess
