"""Optuna's samplers over our history: every method, and that it does not matter who asks when."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

from hostler.errors import MachineError
from hostler.search import telling
from hostler.search.base import New, Trial
from hostler.search.optuna_sampler import OptunaSampler
from hostler.search.samplers import sampler
from hostler.spec import space

METHODS = ["tpe", "cmaes", "nsga2", "qmc"]
GP = pytest.param("gp", marks=pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"))
PLAIN: dict[str, Any] = {
    "lr": {"min": 1e-4, "max": 1.0, "log": True},
    "depth": {"min": 2, "max": 9, "int": True},
    "drop": {"min": 0.0, "max": 0.5, "step": 0.25},
    "model": ["a", "b", {"nested": [1, 2]}],
}
BRANCHED: dict[str, Any] = {
    "lr": {"min": 1e-4, "max": 1.0, "log": True},
    "LIST opt": [{"opt": "sgd", "momentum": {"min": 0.0, "max": 1.0}}, {"opt": "adam"}],
}


def made(
    parameters: dict[str, Any], method: str, goals: Sequence[str] = ("min",), seed: int = 3
) -> OptunaSampler:
    return OptunaSampler(space.parse(parameters, method=method, runs=99, seed=seed), goals, seed)


def done(n: int, new: New, *values: float) -> Trial:
    """As it comes back from the journal: through JSON."""
    picks, attrs = json.loads(json.dumps([dict(new.picks), dict(new.attrs)]))
    return Trial(n, f"{n:07d}-s-x", telling.DONE, picks, attrs, tuple(values))


def value(new: New) -> float:
    return abs(new.picks["lr"] - 0.1) + new.picks.get("depth", 0) / 10


def searched(one: OptunaSampler, count: int) -> list[Trial]:
    trials: list[Trial] = []
    while len(trials) < count:
        new = one.next(trials)
        trials.append(done(len(trials), new, value(new)))
    return trials


@pytest.mark.parametrize("method", METHODS)
def test_every_choice_is_inside_the_space(method: str) -> None:
    for trial in searched(made(PLAIN, method), 14):
        picks = trial.picks
        assert set(picks) == {"lr", "depth", "drop", "model"}
        assert 1e-4 <= picks["lr"] <= 1.0
        assert isinstance(picks["depth"], int) and 2 <= picks["depth"] <= 9
        assert picks["drop"] in (0.0, 0.25, 0.5)
        assert picks["model"] in ("a", "b", {"nested": [1, 2]})


@pytest.mark.parametrize("method", [*METHODS, GP])
def test_late_sampler_asks_what_an_early_one_asks(method: str) -> None:
    old = made(PLAIN, method)
    trials = searched(old, 25 if method != "gp" else 11)
    assert made(PLAIN, method).next(trials) == old.next(trials)


@pytest.mark.parametrize("method", METHODS)
def test_a_question_whose_answer_was_not_used_changes_nothing(method: str) -> None:
    one, other = made(PLAIN, method), made(PLAIN, method)
    trials = searched(one, 15)
    for _ in range(3):
        one.next(trials)
    foreign = done(15, made(PLAIN, method, seed=99).next(trials), 0.3)
    assert one.next([*trials, foreign]).picks == other.next([*trials, foreign]).picks


@pytest.mark.parametrize("method", METHODS)
def test_another_seed_is_another_search(method: str) -> None:
    assert made(PLAIN, method, seed=1).next([]).picks != made(PLAIN, method, seed=2).next([]).picks


@pytest.mark.parametrize("method", METHODS)
def test_consecutive_questions_differ_while_the_first_runs(method: str) -> None:
    one = made(PLAIN, method)
    trials = searched(one, 12)
    new = one.next(trials)
    live = replace(done(12, new), state=telling.LIVE, values=None)
    assert one.next([*trials, live]).picks != new.picks


@pytest.mark.parametrize("method", ["tpe", "nsga2", "qmc", "cmaes"])
def test_conditional_parameters_are_chosen_where_they_count(method: str) -> None:
    found = searched(made(BRANCHED, method), 30)
    branches = {trial.picks["LIST opt"] for trial in found}
    assert branches == {0, 1}
    for trial in found:
        assert ("LIST opt/0/momentum" in trial.picks) == (trial.picks["LIST opt"] == 0)


def test_learning_search_improves_on_its_beginning() -> None:
    values = [trial.values[0] for trial in searched(made(PLAIN, "tpe"), 60) if trial.values]
    assert min(values[10:]) < min(values[:10])
    assert sum(values[-20:]) / 20 < sum(values[:10]) / 10


@pytest.mark.parametrize("method", ["nsga2", "tpe", "qmc"])
def test_several_objectives_are_searched_together(method: str) -> None:
    one = made(PLAIN, method, ("min", "max"))
    trials: list[Trial] = []
    for n in range(25):
        new = one.next(trials)
        trials.append(done(n, new, new.picks["lr"], float(new.picks["depth"])))
    assert made(PLAIN, method, ("min", "max")).next(trials).picks == one.next(trials).picks


def test_a_failed_trial_teaches_nothing_but_has_its_number() -> None:
    trials = searched(made(PLAIN, "tpe"), 15)
    failed = replace(trials[3], state=telling.FAILED, values=None)
    one = made(PLAIN, "tpe")
    one.next([*trials[:3], failed, *trials[4:]])
    assert one._study.trials[3].state.name == "FAIL"
    assert len([t for t in one._study.trials if t.state.name == "COMPLETE"]) == 14


def test_paused_run_counts_as_pruned_until_done() -> None:
    trials = searched(made(PLAIN, "tpe"), 12)
    paused = replace(trials[5], state=telling.PAUSED, values=None, curve={1: 0.9, 3: 0.7})
    one = made(PLAIN, "tpe")
    before = [*trials[:5], paused, *trials[6:]]
    one.next(before)
    assert one._study.trials[5].state.name == "PRUNED"
    assert one._study.trials[5].intermediate_values == {1: 0.9, 3: 0.7}
    assert one.next(trials).picks == made(PLAIN, "tpe").next(trials).picks
    assert one._study.trials[5].value == trials[5].values[0]  # type: ignore[index]


def test_a_live_trial_that_others_pruned_has_its_curve() -> None:
    one = made(PLAIN, "tpe")
    new = one.next([])
    live = replace(done(0, new), state=telling.LIVE, values=None)
    one.next([live])
    one.next([replace(live, state=telling.PRUNED, values=(0.7,), curve={2: 0.7})])
    assert one._study.trials[0].intermediate_values == {2: 0.7}
    assert one._study.trials[0].value == 0.7


def test_trials_of_a_space_that_was_edited_count_for_nothing() -> None:
    trials = searched(made(PLAIN, "tpe"), 12)
    one = made({**PLAIN, "depth": {"min": 20, "max": 30, "int": True}}, "tpe")
    assert 20 <= one.next(trials).picks["depth"] <= 30


def test_points_of_a_sequence_are_spread_better_than_chance() -> None:
    one = made({"x": {"min": 0.0, "max": 1.0}}, "qmc")
    trials: list[Trial] = []
    for n in range(16):
        trials.append(done(n, one.next(trials), 0.0))
    assert {int(trial.picks["x"] * 16) for trial in trials} == set(range(16))


def test_missing_sampler_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cmaes", None)
    with pytest.raises(MachineError, match=r"cmaes.*not installed.*hostler\[search\]"):
        sampler(space.parse(PLAIN, method="cmaes", runs=9), ["min"], 0)
