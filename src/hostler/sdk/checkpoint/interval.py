"""Chooses the interval between checkpoints from their cost and a preemption's loss. Pure.

Saving every T seconds costs cost/T of all time; a preemption every M seconds loses T/2 of work each. The sum
is least at T = sqrt(2 · cost · M). A writer that is never idle could not keep up, so T is at least a few
times what writing takes.
"""

from __future__ import annotations

from math import sqrt

from hostler.frozen import dataclass

SHARE = 0.1  # of the writing that the loop is taken to feel: a core, and memory bandwidth
IDLE = 3.0  # the writer rests at least two thirds of the time


@dataclass(frozen=True)
class Cost:
    """Seconds of one checkpoint."""

    waits: float  # the loop stands still
    writes: float  # until it is durable


@dataclass(frozen=True)
class IntervalChoice:
    seconds: float
    said: str


def choose(cost: Cost, *, between: float, least: float, most: float) -> IntervalChoice:
    """The interval for machines that are taken away every `between` seconds on average."""
    felt = cost.waits + SHARE * cost.writes
    best = sqrt(2 * felt * between)
    seconds = min(most, max(least, IDLE * (cost.waits + cost.writes), best))
    share = felt / seconds * 100
    text = (
        f"a checkpoint every {_seconds(seconds)}: each costs the loop {_seconds(felt)} "
        f"({share:.2g} % of the time) and takes {_seconds(cost.writes)} to write; "
        f"a preemption would lose {_seconds(seconds / 2)} of work on average"
    )
    return IntervalChoice(seconds, text)


def _seconds(value: float) -> str:
    if value >= 120:
        return f"{value / 60:.0f} min"
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s" if value >= 0.1 else f"{value * 1000:.2g} ms"
