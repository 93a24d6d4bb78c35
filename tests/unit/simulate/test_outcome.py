"""Means, intervals, and which is the best."""

from __future__ import annotations

import random

import pytest

from hostler.simulate.outcome import SimulationOutcome, SimulationSummary, best, span, summarize


def summary(
    fleet: str, seconds: float, cost: float | None, *, done: int = 10, seeds: int = 20
) -> SimulationSummary:
    found = [SimulationOutcome(seconds, seconds, cost or 0.0, done, left=10 - done)] * seeds
    return summarize(fleet, 300, 10, found, priced=cost is not None)


def test_nine_of_ten_lie_in_the_interval() -> None:
    chance = random.Random(5)
    found = span([chance.gauss(100, 10) for _ in range(2000)])
    assert found.mean == pytest.approx(100, abs=1)
    assert (found.low, found.high) == (pytest.approx(83.6, abs=1.5), pytest.approx(116.4, abs=1.5))


def test_of_twenty_the_interval_reaches_to_the_outermost_ones() -> None:
    found = span([float(n) for n in range(20)])
    assert found.low < 0.1 and found.high > 18.9 and span([7.0]) == span([7.0, 7.0])


def test_the_best_is_the_cheapest_or_the_fastest_that_finishes() -> None:
    slow, fast, undone = summary("slow", 100, 5), summary("fast", 10, 9), summary("undone", 1, 1, done=9)
    assert best([slow, fast, undone]) is slow and best([slow, fast, undone], by="time") is fast
    assert best([undone]) is None


def test_where_no_price_is_known_the_best_is_the_fastest() -> None:
    slow, fast = summary("slow", 100, None), summary("fast", 10, None)
    assert best([slow, fast]) is fast


def test_fleet_is_unable_by_frequent_but_not_rare_bad_luck() -> None:
    good, bad = (
        SimulationOutcome(10, 10, 1, 10),
        SimulationOutcome(0, 0, 0, 0, left=10, given_up="no VM came"),
    )
    rare = summarize("f", 300, 10, [good] * 99 + [bad], priced=True)
    assert rare.finishes and rare.abandoned == 1 and rare.seconds.mean == 10
    often = summarize("f", 300, 10, [good] * 80 + [bad] * 20, priced=True)
    assert not often.finishes and often.given_up == "no VM came"
