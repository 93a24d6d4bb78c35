"""How often a checkpoint pays."""

from __future__ import annotations

import pytest

from hostler.sdk.checkpoint.interval import Cost, choose

HOUR = 3600.0


@pytest.mark.parametrize(
    ("waits", "writes", "between", "seconds"),
    [
        (0.5, 0.0, HOUR, 60.0),  # sqrt(2 · 0.5 · 3600)
        (0.001, 0.001, HOUR, 10.0),  # next to nothing: as often as allowed
        (0.1, 100.0, HOUR, 300.3),  # the writer must rest
        (60.0, 60.0, 100 * HOUR, 600.0),  # never more rarely than this
    ],
)
def test_the_interval_is_where_saving_and_losing_cost_least(
    waits: float, writes: float, between: float, seconds: float
) -> None:
    chosen = choose(Cost(waits, writes), between=between, least=10.0, most=600.0)
    assert chosen.seconds == pytest.approx(seconds)


def test_no_other_interval_costs_less() -> None:
    cost, between = Cost(2.0, 0.0), 2 * HOUR
    best = choose(cost, between=between, least=1.0, most=10_000.0).seconds

    def loss(seconds: float) -> float:
        return cost.waits / seconds + seconds / 2 / between

    assert all(loss(best) <= loss(best * factor) for factor in (0.5, 0.9, 1.1, 2.0))


def test_it_says_what_it_chose_and_why() -> None:
    said = choose(Cost(0.5, 0.0), between=HOUR, least=10.0, most=600.0).said
    assert said == (
        "a checkpoint every 60 s: each costs the loop 0.5 s (0.83 % of the time) and takes 0 ms to write; "
        "a preemption would lose 30 s of work on average"
    )
