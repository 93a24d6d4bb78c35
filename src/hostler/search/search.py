"""A search: a sampler and a pruner behind one question.

Paused runs that may go on come first, then new configurations while the budget lasts. With `repeat` a
configuration is tried so often in a row, and its sampler sees the mean.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Protocol

from hostler.frozen import dataclass
from hostler.search import telling
from hostler.search.base import (
    Answer,
    Done,
    Go,
    History,
    New,
    Pruner,
    Resume,
    Rungs,
    Standing,
    Trial,
    Verdict,
    Wait,
)


class Sampler(Protocol):
    def next(self, trials: Sequence[Trial]) -> New:
        """A configuration for the trial after these."""


@dataclass(frozen=True)
class Search:
    """`sampler` None: runs come from elsewhere, and only paused ones are asked for. `budget` in runs."""

    sampler: Sampler | None
    pruner: Pruner | None = None
    budget: int | None = None
    repeat: int = 1

    def ask(self, history: History) -> Answer:
        trials = history.trials
        live = any(trial.state == telling.LIVE for trial in trials)
        used_up = self.sampler is None or (self.budget is not None and len(trials) >= self.budget)
        promoted = self._promoted(history, over=used_up and not live)
        if promoted:
            return promoted
        if used_up:
            paused = any(trial.state == telling.PAUSED for trial in trials)
            return Wait() if live and (paused or self._pauses) else Done("the budget is used up")
        assert self.sampler is not None
        if len(trials) % self.repeat:
            return New(trials[-1].picks, trials[-1].attrs)
        return self.sampler.next(grouped(trials, self.repeat))

    def should_prune(self, place: Standing, history: History) -> Verdict:
        return self.pruner.judge(place, history.rungs) if self.pruner else Go()

    @property
    def _pauses(self) -> bool:
        return self.pruner is not None and self.pruner.pauses

    def _promoted(self, history: History, *, over: bool) -> Resume | None:
        if self.pruner is None or not self.pruner.pauses:
            return None
        paused = [trial.run for trial in history.trials if trial.state == telling.PAUSED]
        rungs = history.rungs
        if over:
            failed = {trial.run for trial in history.trials if trial.state == telling.FAILED}
            rungs = without(rungs, failed)
        return self.pruner.promote(rungs, paused, over=over)


def without(rungs: Rungs, runs: Collection[str]) -> Rungs:
    """The rungs without these runs, and without levels that then have none."""
    kept = {
        level: {run: s for run, s in scores.items() if run not in runs} for level, scores in rungs.items()
    }
    return {level: scores for level, scores in kept.items() if scores}


def grouped(trials: Sequence[Trial], repeat: int) -> list[Trial]:
    """A trial for each configuration: live while one of its repeats is, else the mean of those that did."""
    if repeat == 1:
        return list(trials)
    return [_group(n, trials[n * repeat : (n + 1) * repeat]) for n in range(-(-len(trials) // repeat))]


def _group(number: int, repeats: Sequence[Trial]) -> Trial:
    first = replace(repeats[0], number=number)
    if any(trial.state in (*telling.OPEN, telling.PAUSED) for trial in repeats):
        return replace(first, state=telling.LIVE, values=None)
    told = [trial.values for trial in repeats if trial.values is not None]
    if not told:
        return replace(first, state=telling.FAILED, values=None)
    done = [trial for trial in repeats if trial.state == telling.DONE]
    means = tuple(statistics.fmean(column) for column in zip(*told, strict=True))
    return replace(first, state=telling.DONE if done else telling.PRUNED, values=means)
