"""Optuna's samplers over our own history: a study in memory, brought up to date before each question.

The study is this process's alone and is rebuilt from history whenever what it was told has changed since.
Every question has a seed of its own, made of the search's and the number of the trial: who asks, and how
often, changes nothing. What a sampler notes on a trial is returned with it, and given back to it later.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, NSGAIISampler, QMCSampler, TPESampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from hostler.search import telling
from hostler.search.base import New
from hostler.search.base import Trial as Told
from hostler.search.dimension import Dimension, Picks

NOTES = ("cmaes", "nsga2")  # methods that note on a trial what later ones need
RUNNING = (telling.LIVE, None, 0)

Said = tuple[str, tuple[float, ...] | None, int]  # state, values, how far its curve was


class OptunaSampler:
    """One sampler by name. `goals`: max or min for each objective."""

    def __init__(
        self, method: str, dimensions: Sequence[Dimension], goals: Sequence[str], seed: int
    ) -> None:
        self._method, self._dimensions, self._goals, self._seed = method, tuple(dimensions), goals, seed
        self._distributions = {one.name: _distribution(one) for one in dimensions}
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._begin()

    def next(self, trials: Sequence[Told]) -> New:
        """A configuration for the trial after these, which are all there are, in order."""
        if not self._follows(trials):
            self._begin()
        self._catch_up(trials)
        number = len(trials)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is experimental in Optuna is its matter
            self._study.sampler = self._sampler(number)
            trial = self._study.ask()
            picks = {one.name: self._suggest(trial, one) for one in self._active(trial)}
        self._optuna += 1
        self._asked = (trial.number, picks)
        return New(picks, self._notes(trial.number))

    def _begin(self) -> None:
        self._storage = InMemoryStorage()
        directions = ["maximize" if goal == "max" else "minimize" for goal in self._goals]
        self._study = optuna.create_study(storage=self._storage, directions=directions)
        self._id = self._storage.get_study_id_from_name(self._study.study_name)
        self._optuna = 0  # trials in the study
        self._numbers: list[int] = []  # our number → the study's
        self._said: list[Said] = []
        self._asked: tuple[int, Picks] | None = None  # the study's number of what was asked last

    def _follows(self, trials: Sequence[Told]) -> bool:
        """Whether the study can be brought to this: what it knows as over has not changed."""
        if len(trials) < len(self._said):
            return False
        return all(
            said in (RUNNING, now) or now == RUNNING
            for said, now in zip(self._said, map(_said, trials), strict=False)
        )

    def _catch_up(self, trials: Sequence[Told]) -> None:
        for told in trials:
            now = _said(told)
            if told.number == len(self._said):
                self._adopt(told) or self._add(told)
            if self._said[told.number] == RUNNING and now != RUNNING:
                self._finish(told)
                self._said[told.number] = now
        if self._asked:  # another's trial has that number
            self._close(self._asked[0], TrialState.FAIL)
            self._asked = None

    def _adopt(self, told: Told) -> bool:
        """Whether this trial is what was asked for last."""
        if self._asked is None or self._asked[1] != dict(told.picks):
            return False
        self._numbers.append(self._asked[0])
        self._said.append(RUNNING)
        self._asked = None
        return True

    def _add(self, told: Told) -> None:
        self._numbers.append(self._optuna)
        self._optuna += 1
        self._said.append(_said(told))
        self._study.add_trial(self._frozen(told))

    def _frozen(self, told: Told) -> FrozenTrial:
        known = {name: self._distributions[name] for name in told.picks if name in self._distributions}
        state, values = _outcome(told)
        try:
            return create_trial(
                state=state,
                values=values,
                params={name: told.picks[name] for name in known},
                distributions=known,
                system_attrs=dict(told.attrs),
                intermediate_values=dict(told.curve) if state == TrialState.PRUNED else {},
            )
        except ValueError:  # of a space that was edited since: it is outside
            return create_trial(state=TrialState.FAIL)

    def _finish(self, told: Told) -> None:
        state, values = _outcome(told)
        number = self._numbers[told.number]
        if state == TrialState.PRUNED:
            trial = self._storage.get_trial_id_from_study_id_trial_number(self._id, number)
            for level, value in told.curve.items():
                self._storage.set_trial_intermediate_value(trial, level, value)
        self._close(number, state, values)

    def _close(self, number: int, state: TrialState, values: Sequence[float] | None = None) -> None:
        trial = self._storage.get_trial_id_from_study_id_trial_number(self._id, number)
        self._storage.set_trial_state_values(trial, state, values)

    def _notes(self, number: int) -> Mapping[str, Any]:
        if self._method not in NOTES:
            return {}
        trial = self._storage.get_trial_id_from_study_id_trial_number(self._id, number)
        return dict(self._storage.get_trial(trial).system_attrs)

    def _sampler(self, number: int) -> BaseSampler:
        digest = hashlib.sha256(f"{self._seed}/{number}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big")
        if self._method == "tpe":
            return TPESampler(seed=seed, group=any(one.active for one in self._dimensions))
        if self._method == "gp":
            return GPSampler(seed=seed)
        if self._method == "cmaes":
            return CmaEsSampler(seed=seed, warn_independent_sampling=False)
        if self._method == "nsga2":
            return NSGAIISampler(seed=seed)
        return _Sequence(self._distributions, number, self._seed)

    def _active(self, trial: Trial) -> Any:
        """The dimensions that count, one by one: whether a later one does may hang on those before it."""
        for one in self._dimensions:
            if one.active is None or one.active(trial.params):
                yield one

    def _suggest(self, trial: Trial, one: Dimension) -> Any:
        if one.kind == "choice":
            return trial.suggest_categorical(one.name, list(range(one.choices)))
        if one.kind == "int":
            step = int(one.step) if one.step else 1
            return trial.suggest_int(one.name, int(one.low), int(one.high), step=step, log=one.log)
        return trial.suggest_float(one.name, one.low, one.high, step=one.step, log=one.log)


class _Sequence(QMCSampler):
    """The n-th point of a scrambled Sobol sequence over all dimensions, whatever the study holds."""

    def __init__(self, space: Mapping[str, BaseDistribution], number: int, seed: int) -> None:
        super().__init__(scramble=True, seed=seed, warn_independent_sampling=False)
        self._space, self._number = space, number

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {name: one for name, one in self._space.items() if not one.single()}

    def _find_sample_id(self, study: optuna.Study, search_space: dict[str, BaseDistribution]) -> int:
        return self._number


def _distribution(one: Dimension) -> BaseDistribution:
    if one.kind == "choice":
        return CategoricalDistribution(list(range(one.choices)))
    if one.kind == "int":
        return IntDistribution(int(one.low), int(one.high), log=one.log, step=int(one.step or 1))
    return FloatDistribution(one.low, one.high, log=one.log, step=one.step)


def _said(told: Told) -> Said:
    if told.state == telling.LIVE:
        return RUNNING
    return told.state, told.values, len(told.curve)


def _outcome(told: Told) -> tuple[TrialState, Sequence[float] | None]:
    if told.state == telling.LIVE:
        return TrialState.RUNNING, None
    if told.state == telling.DONE:
        return TrialState.COMPLETE, told.values
    if told.state in (telling.PRUNED, telling.PAUSED) and told.curve:
        return TrialState.PRUNED, [told.curve[max(told.curve)]]
    return TrialState.FAIL, None
