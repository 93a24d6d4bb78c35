"""Halving on a benchmark of learning curves, on a virtual clock: what it saves, and what it finds."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping
from typing import Any

import pytest

from hostler.search import telling
from hostler.search.asha import Asha
from hostler.search.base import Pruner
from hostler.search.pruners import Hyperband, Median
from hostler.search.search import Search
from search_world import Curve, Simulation

SOAK = bool(os.environ.get("HOSTLER_SOAK"))
EPOCHS = 81
SEEDS = range(30 if SOAK else 10)
CONFIGURATIONS = 243 if SOAK else 81
pytestmark = [pytest.mark.soak] if SOAK else []


def benchmark(seed: int) -> tuple[list[Mapping[str, Any]], Curve]:
    """Curves that rise to a height of their own at a pace of their own, so that they cross, with noise."""
    rng = random.Random(seed)
    given = [{"top": rng.betavariate(2, 2), "pace": rng.uniform(1, 8), "n": n} for n in range(CONFIGURATIONS)]

    def curve(picks: Mapping[str, Any], epoch: int) -> float:
        noise = random.Random(f"{seed}/{picks['n']}/{epoch}").gauss(0, 0.01)
        return float(picks["top"]) * (1 - math.exp(-epoch / picks["pace"])) + noise

    return given, curve


def simulated(seed: int, pruner: Pruner | None) -> Simulation:
    given, curve = benchmark(seed)
    return Simulation(Search(None, pruner), curve, "max", EPOCHS, given=list(given), seed=seed).run()


def test_without_a_pruner_every_epoch_is_trained() -> None:
    assert simulated(0, None).epochs == CONFIGURATIONS * EPOCHS


@pytest.mark.parametrize("seed", SEEDS)
def test_halving_saves_sixty_percent_and_finds_the_best(seed: int) -> None:
    given, curve = benchmark(seed)
    pruned = simulated(seed, Asha(9, 3, EPOCHS))
    assert pruned.epochs <= 0.4 * len(given) * EPOCHS
    assert pruned.best == max(curve(picks, EPOCHS) for picks in given)


def test_paused_runs_went_on_and_none_was_trained_twice() -> None:
    pruned = simulated(1, Asha(9, 3, EPOCHS))
    assert any(run.until and run.state == telling.DONE for run in pruned.runs)
    assert pruned.epochs == sum(run.step for run in pruned.runs)
    assert len(pruned.runs) == CONFIGURATIONS


def test_whoever_waits_is_never_better_than_all_who_went_on() -> None:
    pruned = simulated(2, Asha(9, 3, EPOCHS))
    for level, values in pruned.rungs.items():
        further = {run.id for run in pruned.runs if run.step > level}
        waiting = [run.id for run in pruned.runs if run.step == level and run.state == telling.PAUSED]
        ranked = sorted(values, key=lambda run: (-values[run], run))
        must = set(ranked[: len(ranked) // 3])
        assert must <= further, f"the best third at {level} has gone on"
        assert not must & set(waiting)


@pytest.mark.parametrize("pruner", [Hyperband(1, EPOCHS, 3), Median(3), Asha(9, 3, EPOCHS, pauses=False)])
def test_the_others_save_too_and_lose_little(pruner: Pruner) -> None:
    found = [(simulated(seed, pruner), benchmark(seed)) for seed in range(4)]
    assert all(one.epochs <= 0.6 * CONFIGURATIONS * EPOCHS for one, _ in found)
    lost = [max(curve(p, EPOCHS) for p in given) - one.best for one, (given, curve) in found]
    assert sorted(lost)[1] <= 0.05
