"""Searches on a virtual clock: several workers, runs that take their time, nothing but pure decisions."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hostler.search import telling
from hostler.search.base import Go, History, New, Pause, Resume, Standing, Trial
from hostler.search.search import Search

Curve = Callable[[Mapping[str, Any], int], float]  # picks, step → value


@dataclass
class Run:
    number: int
    picks: Mapping[str, Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    step: int = 0
    until: int = 0
    state: str = telling.LIVE
    value: float | None = None

    @property
    def id(self) -> str:
        return f"{self.number:07d}-s-x"


@dataclass
class Simulation:
    """`steps` of training make a run; each takes a time of its own."""

    search: Search
    curve: Curve
    goal: str
    steps: int = 1
    workers: int = 8
    seed: int = 0
    given: list[Mapping[str, Any]] | None = None  # configurations of a method that does not learn
    runs: list[Run] = field(default_factory=list)
    rungs: dict[int, dict[str, float]] = field(default_factory=dict)
    epochs: int = 0  # trained in all

    def run(self) -> Simulation:
        rng = random.Random(self.seed)
        busy: list[tuple[float, int, Run]] = []
        now, free = 0.0, self.workers
        while True:
            while free and (taken := self._take()):
                heapq.heappush(busy, (now + rng.uniform(0.5, 1.5), taken.number, taken))
                free -= 1
            if not busy:
                return self
            now, _, run = heapq.heappop(busy)
            if self._train(run):
                heapq.heappush(busy, (now + rng.uniform(0.5, 1.5), run.number, run))
            else:
                free += 1

    @property
    def best(self) -> float:
        done = [run.value for run in self.runs if run.state == telling.DONE and run.value is not None]
        return max(done) if self.goal == "max" else min(done)

    def _take(self) -> Run | None:
        answer = self.search.ask(self.history())
        if isinstance(answer, Resume):
            run = self.runs[int(answer.run[:7])]
            assert run.state == telling.PAUSED
            run.state, run.until = telling.LIVE, answer.until
            return run
        if isinstance(answer, New):
            self.runs.append(Run(len(self.runs), answer.picks, answer.attrs))
            return self.runs[-1]
        if self.given and len(self.runs) < len(self.given):
            self.runs.append(Run(len(self.runs), self.given[len(self.runs)]))
            return self.runs[-1]
        return None

    def _train(self, run: Run) -> bool:
        """One step; whether it goes on."""
        run.step += 1
        self.epochs += 1
        run.value = self.curve(run.picks, run.step)
        if run.step >= self.steps:
            run.state = telling.DONE
            return False
        pruner = self.search.pruner
        if pruner is None:
            return True
        level = pruner.level(run.step, run.id)
        if level != run.step or level < run.until:
            return True
        self.rungs.setdefault(level, {})[run.id] = run.value
        verdict = self.search.should_prune(Standing(run.id, level), self.history())
        if isinstance(verdict, Go):
            return True
        run.state = telling.PAUSED if isinstance(verdict, Pause) else telling.PRUNED
        return False

    def history(self) -> History:
        return History([self._trial(run) for run in self.runs], telling.scores(self.rungs, self.goal))

    def _trial(self, run: Run) -> Trial:
        curve = {level: here[run.id] for level, here in sorted(self.rungs.items()) if run.id in here}
        ended = run.state in (telling.DONE, telling.PRUNED)
        values = (run.value,) if ended and run.value is not None else None
        return Trial(run.number, run.id, run.state, run.picks, run.attrs, values, curve)
