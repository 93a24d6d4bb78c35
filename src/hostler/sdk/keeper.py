"""Keeps a run's state: what is tracked, and what the library itself must know to go on."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler.records import saved_folder
from hostler.records.saved_folder import Mark
from hostler.sdk import best as bests
from hostler.sdk import rng
from hostler.sdk.beginnings import Beginnings
from hostler.sdk.best import Best
from hostler.sdk.home import Home
from hostler.sdk.loops import EPOCH
from hostler.sdk.params import refuse_changed
from hostler.sdk.policy import Policy
from hostler.sdk.position import Position

if TYPE_CHECKING:
    from hostler.sdk.checkpointer import Checkpointer

FORMAT = 1
BEST = "best"
PAYS = 20  # an epoch's end is worth a checkpoint once this many times its cost has passed
KEPT = Policy(every_steps=1 << 62, each_epoch=False, keep=2)  # of a best one: saved when it is, and only then


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
        self._tracked: dict[str, Any] = {}
        self._beginnings = Beginnings(self._generators)
        self._made: Checkpointer | None = None
        self._act: Callable[[], None] = lambda: None
        self._asked = False  # a checkpoint was asked for
        self._rank, self._ranks = rank, ranks
        self._bests: dict[str, Checkpointer] = {}
        self._saved, self._cost = float("-inf"), 0.0
        self.position = Position()
        self.best: dict[str, Best] = {}
        self.memory: dict[str, Any] = {}
        self.resumed = self.finished = False

    def restore(self, allowed: bool | Iterable[str]) -> None:
        """Go on from the newest whole checkpoint in the folder, if there is one."""
        if not saved_folder.marks(self._folder):
            return
        found = self._checkpointer.restore()
        if found is None:
            return
        refuse_changed(found.state.get("params", {}), self._params, allowed, self._home.run)
        self.position.load(found.state["position"])
        self._beginnings.load(found.state["beginnings"])
        self.memory.update(found.state["memory"])
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
        return any(_is_loader(one) for one in self._tracked.values())

    def at_boundary(self, act: Callable[[], None]) -> None:
        """What a tracked loader does between two batches."""
        self._act = act

    def epoch_began(self, depth: int) -> None:
        if self.saves:
            self._beginnings.begin(depth)
            self._checkpointer.epoch_began()

    def goes_on(self) -> None:
        """A loop goes on where the checkpoint was made: so do the random numbers."""
        self._checkpointer.resume_rng()

    @property
    def saves(self) -> bool:
        """Whether there is anything to go on with: a place in a loop alone would be that of another state."""
        return bool(self._tracked) or self._asked or self.resumed

    def due(self, kind: str) -> bool:
        if not self.saves:
            return False
        if self._checkpointer.due(self.position.now):
            return True
        if kind != EPOCH or not self._policy.each_epoch:
            return False
        rested = self._clock() - self._saved >= PAYS * self._cost
        return rested and self._checkpointer.wait(0)

    def save(self, points: int, *, finished: Mapping[str, Any] | None = None, wait: bool = False) -> None:
        begun, self._asked = self._clock(), True
        for checkpointer in self._bests.values():  # what this one says is best must be there
            checkpointer.wait()
        step = self.position.now
        if self._ranks > 1:  # the same on all ranks, whatever each of them has saved before
            step = self.position.ticks + (finished is not None)
        self._checkpointer.save(step, self._state(), finished=finished, points=points, wait=wait)
        self._beginnings.forget()
        self._saved = self._clock()
        self._cost = self._saved - begun

    def finish(self, points: int, summary: Mapping[str, Any]) -> None:
        """The last checkpoint, marked finished; the best one goes to the outputs."""
        for checkpointer in self._bests.values():
            checkpointer.close()
        if self._rank == 0:
            self._show_best()
        if self.saves or self.position.begun:  # else there is nothing that could be begun again
            self.save(points, finished=dict(summary), wait=True)
        self.close()

    def _show_best(self) -> None:
        for place in (self._folder / BEST).glob("*"):
            for mark in saved_folder.committed(place)[:1]:
                target = self._home.folder.output / BEST / place.name
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(place / mark.name, target)

    def close(self) -> None:
        """What was begun is written to its end."""
        for checkpointer in (self._made, *self._bests.values()):
            if checkpointer is not None:
                checkpointer.close()

    @property
    def _checkpointer(self) -> Checkpointer:
        """Made when it is first needed: a run that only logs needs none."""
        if self._made is None:
            self._made = self._make(self._folder, self._policy, self._rank, self._ranks)
            self._made.at_boundary = self._act
            self._made.on_resume = self._beginnings.goes_on
        return self._made

    def _make(self, folder: Path, policy: Policy, rank: int = 0, ranks: int = 1) -> Checkpointer:
        from hostler.sdk.checkpointer import Checkpointer  # and all that tells of tensors: heavy

        return Checkpointer(folder, policy=policy, say=self._say, rank=rank, world=ranks)

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
        kept = {name: one for name, one in self._tracked.items() if not _is_loader(one)}
        if not kept or self._rank:
            return
        folder = self._folder / BEST / metric.replace("/", "-")
        checkpointer = self._bests.get(metric)
        if checkpointer is None:
            checkpointer = self._make(folder, KEPT)
            checkpointer.track(**kept)
            self._bests[metric] = checkpointer
        checkpointer.wait()
        saved_folder.remove(folder, Mark(best.step or 0))  # of a step that is trained once more
        checkpointer.save(best.step or 0, {"metric": metric, **best.state()})

    def _generators(self) -> dict[str, Any]:
        return {name: one for name, one in self._tracked.items() if rng.is_generator(one)}

    def _state(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "run": self._home.run,
            "params": dict(self._params),
            "position": self.position.state(),
            "beginnings": self._beginnings.state(self.position.depth),
            "memory": dict(self.memory),
            "best": {name: best.state() for name, best in self.best.items()},
        }


def _is_loader(thing: Any) -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(thing, data.DataLoader)
