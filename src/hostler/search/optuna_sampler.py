"""Optuna's samplers over our own history: a study in memory, brought up to date before each question.

The study is this process's alone and is rebuilt from history whenever what it was told has changed since.
Every question has a seed of its own, made of the search's and the number of the trial: who asks, and how
often, changes nothing. What a sampler notes on a trial is returned with it, and given back to it later.
"""

from __future__ import annotations

import hashlib
import json
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
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from hostler.search import telling
from hostler.search.base import New
from hostler.search.base import Trial as Told
from hostler.spec.space import Dimension, Space

MAXIMIZE, MINIMIZE = StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE
NOTES = ("cmaes", "nsga2")  # methods that note on a trial what later ones need
RUNNING = (telling.LIVE, None, 0)

Said = tuple[str, tuple[float, ...] | None, int]  # state, values, how far its curve was


class OptunaSampler:
    """The sampler of the space's method. `goals`: max or min for each objective."""

    def __init__(self, space: Space, goals: Sequence[str], seed: int) -> None:
        self._space, self._goals, self._seed = space, goals, seed
        dimensions = space.dimensions()
        self._distributions = {dimension.name: _distribution(dimension) for dimension in dimensions}
        self._places = {
            dimension.name: _places(dimension) for dimension in dimensions if dimension.kind == "choice"
        }
        self._branching = _branching(space)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._asked: tuple[int, Mapping[str, Any]] | None = None  # the study's number of what was asked last
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
            picks, _ = self._space.ask(lambda one: _suggest(trial, one))
        self._optuna += 1
        self._asked = (trial.number, picks)
        return New(picks, self._notes(trial.number))

    def _begin(self) -> None:
        self._storage = InMemoryStorage()
        directions = [MAXIMIZE if goal == "max" else MINIMIZE for goal in self._goals]
        self._study = optuna.create_study(storage=self._storage, directions=directions)
        self._id = self._storage.get_study_id_from_name(self._study.study_name)
        self._optuna = 0  # trials in the study
        self._numbers: list[int] = []  # our number → the study's
        self._said: list[Said] = []
        self._known: list[Told] = []  # the trials of the last question
        self._asked = None

    def _follows(self, trials: Sequence[Told]) -> bool:
        """Whether the study can be brought to this: what it knows as over has not changed."""
        if len(trials) < len(self._said) or (self._space.method == "cmaes" and self._in_vain(trials)):
            return False
        return all(
            trial is known or said == RUNNING or _said(trial) in (said, RUNNING)
            for said, known, trial in zip(self._said, self._known, trials, strict=False)
        )

    def _in_vain(self, trials: Sequence[Told]) -> bool:
        """Whether the last answer was not used: it stays in the study, and this sampler's seed counts it."""
        at = len(self._said)
        return self._asked is not None and (len(trials) == at or not self._is_asked(trials[at]))

    def _is_asked(self, told: Told) -> bool:
        return self._asked is not None and _text(self._asked[1]) == _text(told.picks)

    def _catch_up(self, trials: Sequence[Told]) -> None:
        for n, trial in enumerate(trials):
            if n < len(self._known) and trial is self._known[n]:
                continue
            if n == len(self._said):
                self._take_in(trial)
            if self._said[n] == RUNNING and _said(trial) != RUNNING:
                self._finish(trial)
                self._said[n] = _said(trial)
        self._known = list(trials)
        if self._asked:  # another's trial has that number
            self._close(self._asked[0], TrialState.FAIL)
            self._asked = None

    def _take_in(self, told: Told) -> None:
        """A trial that is new: the one that was asked for last, or another's."""
        if self._asked and self._is_asked(told):
            self._numbers.append(self._asked[0])
            self._said.append(RUNNING)
            self._asked = None
            return
        self._numbers.append(self._optuna)
        self._optuna += 1
        self._said.append(_said(told))
        self._study.add_trial(self._frozen(told))

    def _frozen(self, told: Told) -> FrozenTrial:
        state, values = _outcome(told)
        try:
            return create_trial(
                state=state,
                values=values,
                params={name: self._inner(name, pick) for name, pick in told.picks.items()},
                distributions={name: self._distributions[name] for name in told.picks},
                system_attrs=dict(told.attrs),
                intermediate_values=dict(told.curve) if state == TrialState.PRUNED else {},
            )
        except (ValueError, KeyError):  # of a space that was edited since: it is outside
            return create_trial(state=TrialState.FAIL)

    def _inner(self, name: str, pick: Any) -> Any:
        """A pick as the study knows it: of a choice, which one."""
        return self._places[name][_text(pick)] if name in self._places else pick

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
        if self._space.method not in NOTES:
            return {}
        trial = self._storage.get_trial_id_from_study_id_trial_number(self._id, number)
        return dict(self._storage.get_trial(trial).system_attrs)

    def _sampler(self, number: int) -> BaseSampler:
        digest = hashlib.sha256(f"{self._seed}/{number}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big")
        method = self._space.method
        if method == "tpe":
            if self._branching:
                return TPESampler(seed=seed, group=True, constant_liar=True)
            return _Flat(self._distributions, seed)
        if method == "gp":
            return GPSampler(seed=seed)
        if method == "cmaes":
            return CmaEsSampler(seed=seed, warn_independent_sampling=False)
        if method == "nsga2":
            return _Generations(seed=seed)
        return _Sequence(self._distributions, number, self._seed)


class _Flat(TPESampler):
    """TPE over a space without branches, which is fixed and not inferred from the trials each time."""

    def __init__(self, space: Mapping[str, BaseDistribution], seed: int) -> None:
        super().__init__(seed=seed, constant_liar=True)
        self._all = {name: one for name, one in sorted(space.items()) if not one.single()}

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._all if len(study.directions) == 1 else {}


class _Generations(NSGAIISampler):
    """Parents in one order, whether the study remembers them or has just been rebuilt."""

    def select_parent(self, study: optuna.Study, generation: int) -> list[FrozenTrial]:
        return sorted(super().select_parent(study, generation), key=lambda trial: trial.number)


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


def _suggest(trial: Trial, one: Dimension) -> Any:
    if one.kind == "choice":
        return one.choices[trial.suggest_categorical(one.name, list(range(len(one.choices))))]
    if one.kind == "int":
        step = int(one.step) if one.step else 1
        return trial.suggest_int(one.name, int(one.low), int(one.high), step=step, log=one.log)
    return trial.suggest_float(one.name, one.low, one.high, step=one.step, log=one.log)


def _distribution(one: Dimension) -> BaseDistribution:
    if one.kind == "choice":
        return CategoricalDistribution(list(range(len(one.choices))))
    if one.kind == "int":
        return IntDistribution(int(one.low), int(one.high), log=one.log, step=int(one.step or 1))
    return FloatDistribution(one.low, one.high, log=one.log, step=one.step)


def _places(one: Dimension) -> dict[str, int]:
    """Choices are any values: which one is it, by how it is written."""
    return {_text(choice): n for n, choice in enumerate(one.choices)}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _branching(space: Space) -> bool:
    """Whether some dimension counts only where another was chosen so."""
    active, _ = space.ask(lambda one: one.choices[0] if one.kind == "choice" else one.low)
    return len(active) < len(space.dimensions())


def _said(told: Told) -> Said:
    if told.state in telling.OPEN:
        return RUNNING
    return told.state, told.values, len(told.curve)


def _outcome(told: Told) -> tuple[TrialState, Sequence[float] | None]:
    if told.state in telling.OPEN:
        return TrialState.RUNNING, None
    if told.state == telling.DONE:
        return TrialState.COMPLETE, told.values
    if told.state in (telling.PRUNED, telling.PAUSED) and told.curve:
        return TrialState.PRUNED, [told.curve[max(told.curve)]]
    return TrialState.FAIL, None
