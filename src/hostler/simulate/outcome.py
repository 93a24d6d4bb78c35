"""Outcomes of simulations: of one, and of many seeds as means and intervals. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hostler.frozen import dataclass

LOW, HIGH = 0.05, 0.95  # of a hundred, ninety lie between


@dataclass(frozen=True)
class SimulationOutcome:
    """Result of one simulation. Seconds count from the launch."""

    seconds: float  # until the last run had ended
    gone: float  # until the last machine was off
    cost: float
    done: int
    failed: int = 0  # not tried again: lost too often without progress
    left: int = 0  # that time, money or the lack of machines left undone
    losses: int = 0  # machines that were taken away
    cut: int = 0  # attempts that ended with them, without a word
    repeated: float = 0.0  # seconds of work that were done twice
    machine_seconds: float = 0.0
    endless: bool = False
    capped: bool = False
    given_up: str = ""


@dataclass(frozen=True)
class Interval:
    """A mean, and between what nine of ten lie."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class SimulationSummary:
    """Result of many simulations of a fleet with one interval between checkpoints."""

    fleet: str
    every: float
    runs: int
    seeds: int
    seconds: Interval
    gone: Interval
    cost: Interval | None  # None: nobody knows its price
    done: float
    failed: float
    left: float
    losses: float
    repeated: float
    machine_hours: float
    endless: bool
    capped: int  # how often time or money was over before the work was
    complete: int  # how often all runs were done
    abandoned: int = 0  # how often no machine came, and the launch was given up
    given_up: str = ""

    @property
    def begins(self) -> bool:
        """Whether a machine ever comes, with any luck."""
        return self.abandoned < self.seeds

    @property
    def finishes(self) -> bool:
        """Whether all of its runs get done, but for rare bad luck."""
        return not self.endless and self.complete >= HIGH * self.seeds


def summarize(
    fleet: str, every: float, runs: int, found: Sequence[SimulationOutcome], *, priced: bool
) -> SimulationSummary:
    outcomes = [one for one in found if not one.given_up] or list(found)
    return SimulationSummary(
        fleet,
        every,
        runs,
        len(found),
        span([one.seconds for one in outcomes]),
        span([one.gone for one in outcomes]),
        span([one.cost for one in outcomes]) if priced else None,
        _mean(outcomes, lambda one: one.done),
        _mean(outcomes, lambda one: one.failed),
        _mean(outcomes, lambda one: one.left),
        _mean(outcomes, lambda one: one.losses),
        _mean(outcomes, lambda one: one.repeated),
        _mean(outcomes, lambda one: one.machine_seconds) / 3600,
        any(one.endless for one in found),
        sum(one.capped for one in found),
        sum(not one.left and not one.failed for one in found),
        sum(bool(one.given_up) for one in found),
        next((one.given_up for one in found if one.given_up), ""),
    )


def best(found: Sequence[SimulationSummary], *, by: str = "cost") -> SimulationSummary | None:
    """The cheapest, or the fastest, of those that finish all their runs; None if none does."""
    able = [one for one in found if one.finishes]
    priced = [one for one in able if one.cost is not None]
    if by == "cost" and priced:
        return min(priced, key=lambda one: (round(one.cost.mean, 6) if one.cost else 0.0, one.seconds.mean))
    return min(able, key=lambda one: (one.seconds.mean, one.cost.mean if one.cost else 0.0), default=None)


def span(values: Sequence[float]) -> Interval:
    ordered = sorted(values)
    return Interval(sum(ordered) / len(ordered), _quantile(ordered, LOW), _quantile(ordered, HIGH))


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between the two that are next to it; of few values the outermost ones, which lie further apart."""
    at = share * (len(ordered) + 1) - 1
    low = min(max(int(at), 0), len(ordered) - 1)
    high = min(low + 1, len(ordered) - 1)
    part = min(max(at - low, 0.0), 1.0)
    return ordered[low] + (ordered[high] - ordered[low]) * part


def _mean(found: Sequence[SimulationOutcome], of: Callable[[SimulationOutcome], float]) -> float:
    return sum(of(outcome) for outcome in found) / len(found)
