"""Keeps a run's state: what is tracked, and what the library itself must know to go on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hostler.sdk import best as bests
from hostler.sdk.best import Best
from hostler.sdk.checkpointer import Checkpointer
from hostler.sdk.home import Home
from hostler.sdk.loader import is_loader
from hostler.sdk.loops import EPOCH
from hostler.sdk.params import refuse_changed
from hostler.sdk.policy import Policy
from hostler.sdk.position import Position

FORMAT = 1
BEST = "best"
PAYS = 20  # an epoch's end is worth a checkpoint once this many times its cost has passed
KEPT = Policy(every_steps=1 << 62, each_epoch=False, keep=1)  # of a best one: saved when it is, and only then


class Keeper:
    def __init__(
        self,
        home: Home,
        params: Mapping[str, Any],
        policy: Policy,
        *,
        say: Callable[[str], None],
        rank: int = 0,
        ranks: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home, self._params, self._policy, self._say, self._clock = home, params, policy, say, clock
        self._folder = home.folder.checkpoint
        self._checkpointer = Checkpointer(self._folder, policy=policy, say=say, rank=rank, world=ranks)
        self._rank, self._ranks = rank, ranks
        self._bests: dict[str, Checkpointer] = {}
        self._tracked: dict[str, Any] = {}
        self._saved, self._cost = float("-inf"), 0.0
        self.position = Position()
        self.best: dict[str, Best] = {}
        self.resumed = self.finished = False

    def restore(self, allowed: bool | Iterable[str]) -> None:
        """Go on from the newest whole checkpoint in the folder, if there is one."""
        found = self._checkpointer.restore()
        if found is None:
            return
        refuse_changed(found.state.get("params", {}), self._params, allowed, self._home.run)
        self.position.load(found.state["position"])
        self.best = bests.load(found.state.get("best", {}))
        self.resumed, self.finished = True, found.finished is not None
        done = "it had finished: nothing is trained again" if self.finished else ""
        if self._rank == 0:
            self._say(f"{self._home.run} goes on from step {self.position.now}{': ' + done if done else ''}")

    def track(self, **objects: Any) -> None:
        self._checkpointer.track(**objects)
        self._tracked.update(objects)

    def is_tracked(self, thing: Any) -> bool:
        return any(one is thing for one in self._tracked.values())

    @property
    def has_loader(self) -> bool:
        """Whether something is tracked that begins where it was by itself."""
        return any(is_loader(one) for one in self._tracked.values())

    def at_boundary(self, act: Callable[[], None]) -> None:
        """What a tracked loader does between two batches."""
        self._checkpointer.at_boundary = act

    def epoch_began(self) -> None:
        self._checkpointer.epoch_began()

    def resume_rng(self) -> None:
        """A loop goes on where the checkpoint was made: so do the random numbers."""
        self._checkpointer.resume_rng()

    def due(self, kind: str) -> bool:
        if self._checkpointer.due(self.position.now):
            return True
        if kind != EPOCH or not self._policy.each_epoch:
            return False
        rested = self._clock() - self._saved >= PAYS * self._cost
        return rested and self._checkpointer.wait(0)

    def save(self, points: int, *, finished: Mapping[str, Any] | None = None, wait: bool = False) -> None:
        begun = self._clock()
        step = self.position.now
        if self._ranks > 1:  # the same on all ranks, whatever each of them has saved before
            step = self.position.ticks + (finished is not None)
        self._checkpointer.save(step, self._state(), finished=finished, points=points, wait=wait)
        self._saved = self._clock()
        self._cost = self._saved - begun

    def finish(self, points: int, summary: Mapping[str, Any]) -> None:
        """The last checkpoint, marked finished; the best one goes to the outputs."""
        for checkpointer in self._bests.values():
            checkpointer.close()
        kept = self._folder / BEST
        if kept.is_dir() and self._rank == 0:
            shutil.copytree(kept, self._home.folder.output / BEST, dirs_exist_ok=True)
        if self._tracked or self.position.begun or self.resumed:  # else there is nothing to go on from
            self.save(points, finished=dict(summary), wait=True)
        self._checkpointer.close()

    def close(self) -> None:
        """What was begun is written to its end."""
        for checkpointer in (self._checkpointer, *self._bests.values()):
            checkpointer.close()

    def keep_best(self, metric: str, goal: str) -> None:
        known = self.best.get(metric)
        self.best[metric] = known if known and known.goal == goal else Best(metric, goal)

    def weigh(self, metrics: Mapping[str, Any], step: int) -> None:
        """Keep the state if one of these values is the best so far."""
        for metric, before in self.best.items():
            if metric not in metrics:
                continue
            try:
                after = before.after(float(metrics[metric]), int(step))
            except (TypeError, ValueError):
                continue
            if after is not before:
                self.best[metric] = after
                self._keep(metric, after)

    def _keep(self, metric: str, best: Best) -> None:
        kept = {name: one for name, one in self._tracked.items() if not is_loader(one)}
        if not kept or self._rank:
            return
        checkpointer = self._bests.get(metric)
        if checkpointer is None:
            folder = self._folder / BEST / metric.replace("/", "-")
            checkpointer = Checkpointer(folder, policy=KEPT, say=self._say)
            checkpointer.track(**kept)
            self._bests[metric] = checkpointer
        checkpointer.save(max(best.step or 0, 0), {"metric": metric, **best.state()}, wait=True)

    def _state(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "run": self._home.run,
            "params": dict(self._params),
            "position": self.position.state(),
            "best": {name: best.state() for name, best in self.best.items()},
        }
