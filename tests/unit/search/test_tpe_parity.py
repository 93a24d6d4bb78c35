"""TPE without a server against Optuna's own with eight parallel workers, on the same virtual schedule."""

from __future__ import annotations

import heapq
import math
import os
import random
from collections.abc import Mapping
from typing import Any

import optuna
import pytest

from hostler.search.base import New, Trial
from hostler.search.samplers import sampler
from hostler.search.search import Search
from hostler.spec import space
from search_world import Simulation

SOAK = bool(os.environ.get("HOSTLER_SOAK"))
pytestmark = [pytest.mark.soak] if SOAK else []
WORKERS = 8
SEEDS = 10
TRIALS = 200 if SOAK else 80
SPACE = {
    "lr": {"min": 1e-5, "max": 1.0, "log": True},
    "decay": {"min": 1e-6, "max": 1e-1, "log": True},
    "dropout": {"min": 0.0, "max": 0.9},
    "layers": {"min": 1, "max": 12, "int": True},
    "act": ["relu", "gelu", "tanh", "silu"],
}


def loss(picks: Mapping[str, Any], step: int = 1) -> float:
    """A valley with a bend: the best rate depends on the depth."""
    lr, decay = math.log10(picks["lr"]), math.log10(picks["decay"])
    kind = {"relu": 0.3, "gelu": 0.0, "tanh": 0.8, "silu": 0.1}[picks["act"]]
    bend = (lr + 2.5 + 0.1 * (picks["layers"] - 6)) ** 2
    return (
        bend
        + 0.3 * (decay + 3) ** 2
        + 4 * (picks["dropout"] - 0.35) ** 2
        + 0.05 * abs(picks["layers"] - 7)
        + kind
    )


def ours(seed: int, method: str = "tpe") -> float:
    found = space.parse(SPACE, method=method, runs=TRIALS, seed=seed)
    search = Search(sampler(found, ["min"], seed), budget=TRIALS)
    return Simulation(search, loss, "min", workers=WORKERS, seed=seed).run().best


def optunas(seed: int) -> float:
    """The same schedule: eight trials out at a time, told when they end."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    rng, busy, now = random.Random(seed), list[tuple[float, int, optuna.Trial, float]](), 0.0
    for n in range(TRIALS):
        if len(busy) == WORKERS:
            now, _, trial, value = heapq.heappop(busy)
            study.tell(trial, value)
        trial = study.ask()
        picks = {
            "lr": trial.suggest_float("lr", 1e-5, 1.0, log=True),
            "decay": trial.suggest_float("decay", 1e-6, 1e-1, log=True),
            "dropout": trial.suggest_float("dropout", 0.0, 0.9),
            "layers": trial.suggest_int("layers", 1, 12),
            "act": trial.suggest_categorical("act", SPACE["act"]),  # type: ignore[arg-type]
        }
        heapq.heappush(busy, (now + rng.uniform(0.5, 1.5), n, trial, loss(picks)))
    for _, _, trial, value in sorted(busy, key=lambda one: one[:2]):
        study.tell(trial, value)
    return study.best_value


def at_random(seed: int) -> float:
    found = space.parse(SPACE, method="random", runs=TRIALS, seed=seed)
    return min(loss(found.params(n)) for n in range(TRIALS))


def worse(one: list[float], other: list[float]) -> float:
    """How likely such ranks are if the first is not worse than the second."""
    from scipy.stats import mannwhitneyu  # half a second for each process that collects this file

    return float(mannwhitneyu(one, other, alternative="greater").pvalue)


@pytest.fixture(scope="module")
def peers() -> list[float]:
    return [optunas(seed) for seed in range(SEEDS)]


def test_ten_seeds_are_no_worse_than_optunas_own(peers: list[float]) -> None:
    assert worse([ours(seed) for seed in range(SEEDS)], peers) > 0.05


def test_random_search_fails_the_same_test(peers: list[float]) -> None:
    assert worse([at_random(seed) for seed in range(SEEDS)], peers) < 0.01


def test_running_trials_keep_eight_workers_from_the_same_place() -> None:
    """Eight questions in a row without an answer: eight different places."""
    found = space.parse(SPACE, method="tpe", runs=TRIALS)
    asked = Simulation(Search(sampler(found, ["min"], 0), budget=30), loss, "min", workers=1).run()
    one = sampler(found, ["min"], 0)
    trials = list(asked.history().trials)
    for n in range(30, 38):
        new = one.next(trials)
        assert isinstance(new, New)
        trials.append(Trial(n, f"{n:07d}-s-x", "live", new.picks))
    places = {round(math.log10(trial.picks["lr"]), 3) for trial in trials[30:]}
    assert len(places) == 8
