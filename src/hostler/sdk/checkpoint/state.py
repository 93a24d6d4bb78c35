"""Keeps a run's state: the tracked objects, and the library's own position."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hostler.sdk import recorder
from hostler.sdk.checkpoint.best import Best, best_of, load
from hostler.sdk.home import Home
from hostler.sdk.loops import EPOCH
from hostler.sdk.params import refuse_changed
from hostler.sdk.position import Position

if TYPE_CHECKING:
    from hostler.sdk.checkpoint.bests import Bests
    from hostler.sdk.checkpoint.checkpointer import Checkpointer
    from hostler.sdk.checkpoint.epoch_rng import Beginnings
    from hostler.sdk.ranks.board import Board

FORMAT = 1
BEST = "best"
PAYS = 20  # an epoch's end is worth a checkpoint once this many times its cost has passed


class TrackedState:
    def __init__(
        self,
        home: Home,
        params: Mapping[str, Any],
        every: float | str | None,
        *,
        say: Callable[[str], None],
        rank: int = 0,
        ranks: int = 1,
        board: Board | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`board`: where several ranks leave notes for each other."""
        self._board = board
        self._home, self._params, self._every, self._say, self._clock = home, params, every, say, clock
        self._folder = home.folder.checkpoint
        self._tracked: dict[str, Any] = {}
        self._made: tuple[Checkpointer, Beginnings] | None = None
        self._act: Callable[[], None] = lambda: None
        self._each_epoch = True
        self._asked = False  # a checkpoint was asked for
        self._rank, self._ranks = rank, ranks
        self._bests: Bests | None = None
        self._lock = threading.RLock()
        self._saved, self._cost = float("-inf"), 0.0
        self.put_off = 0  # steps of the next epoch before one that is due at the end of an epoch
        self._later: int | None = None  # so many iterations must be done by then
        self.position = Position()
        self.best: dict[str, Best] = {}
        self._noted: dict[str, dict[str, Any]] = {}  # best states that are kept, as the worker knows of them
        self.memory: dict[str, Any] = {}
        self.resumed = self.finished = False

    def restore(self, allowed: bool | Iterable[str]) -> None:
        """Go on from the newest whole checkpoint in the folder, if there is one."""
        if not self._folder.is_dir() or not os.listdir(self._folder):
            return
        restored = self._checkpointer.restore()
        if restored is None:
            return
        refuse_changed(restored.state.get("params", {}), self._params, allowed, self._home.run)
        self.position.load(restored.state["position"])
        self._beginnings.load(restored.state["beginnings"])
        self.memory.update(restored.state["memory"])
        self.best.update(load(restored.state.get("best", {})))
        if self._rank == 0 and (self._folder / BEST).is_dir():
            from hostler.sdk.checkpoint.bests import forget_later, there  # only where there is one

            forget_later(self._folder / BEST, self.best)
            for best in there(self._folder / BEST, self.best):
                self.note_kept(best)
        self.resumed, self.finished = True, restored.finished is not None
        done = "it had already finished, and is not trained again" if self.finished else ""
        if self._rank == 0:
            place = restored.state.get("place") or self.place
            self._say(f"{self._home.run} goes on from {place}{': ' + done if done else ''}")

    def begin_anew(self) -> None:
        """Delete leftovers in the folder, which would be mistaken for this run's checkpoints."""
        if self._rank or not self._folder.is_dir() or not os.listdir(self._folder):
            return
        from hostler.sdk.checkpoint.bests import clear  # only where there is something

        clear(self._folder, self._folder / BEST)

    @property
    def place(self) -> str:
        """The run's position, in words."""
        loaders = {name: one._hostler_position for name, one in self._tracked.items() if _is_loader(one)}
        inside = [f"{one.taken} of {name}" for name, one in loaders.items() if one.taken]
        epoch = self.position.epoch
        more = f" (in epoch {epoch}: batch {' and '.join(inside)})" if inside and epoch is not None else ""
        return f"step {self.position.now}{more}"

    def track(self, **objects: Any) -> None:
        self._checkpointer.track(**objects)
        self._tracked.update(objects)

    def is_tracked(self, thing: Any) -> bool:
        return any(one is thing for one in self._tracked.values())

    @property
    def has_loader(self) -> bool:
        """Whether something is tracked that begins where it was by itself."""
        return any(_is_loader(one) for one in self._tracked.values())

    @property
    def has_stopped_early(self) -> bool:
        """Whether an EarlyStopping, tracked or the newest that was asked, has used up its patience."""
        module = sys.modules.get("hostler.sdk.early_stopping")
        if module is None:
            return False
        ours = [one for one in self._tracked.values() if isinstance(one, module.EarlyStopping)]
        return any(one.stopped for one in ours) or (not ours and module.take_stopped())

    def at_boundary(self, act: Callable[[], None]) -> None:
        """Set the action to take between two batches of a tracked loader."""
        self._act = act

    def epoch_began(self, depth: int) -> None:
        if self.saves:
            self._beginnings.begin(depth)
            self._checkpointer.epoch_began()

    def resume_rng(self) -> None:
        """A loop goes on where the checkpoint was made: so do the random numbers."""
        self._checkpointer.resume_rng()

    @property
    def saves(self) -> bool:
        """Whether there is anything to go on with: a place in a loop alone would be that of another state."""
        return bool(self._tracked) or self._asked or self.resumed

    def due(self, kind: str) -> bool:
        if not self.saves:
            return False
        if self._later is not None:
            return kind == EPOCH or self.position.ticks >= self._later
        if not self._is_due(kind):
            return False
        if kind == EPOCH and self.put_off:
            self._later = self.position.ticks + self.put_off
            return False
        return True

    def _is_due(self, kind: str) -> bool:
        if self._checkpointer.due(self.position.now):
            return True
        if kind != EPOCH or not self._each_epoch:
            return False
        rested = self._clock() - self._saved >= PAYS * self._cost
        return rested and self._checkpointer.wait(0)

    def save(self, points: int, *, finished: Mapping[str, Any] | None = None, wait: bool = False) -> None:
        begun, self._asked, self._later = self._clock(), True, None
        step = self.position.now
        if self._ranks > 1:  # the same on all ranks, whatever each of them has saved before
            step = self.position.ticks + (finished is not None)
        there = self._bests.settled() if self._bests else None  # what this one says is best must be there
        self._checkpointer.save(step, self._state(), finished=finished, points=points, wait=wait, first=there)
        self._beginnings.forget()
        self._saved = self._clock()
        self._cost = self._saved - begun

    def finish(self, points: int, summary: Mapping[str, Any]) -> None:
        """The last checkpoint, marked finished; the best one goes to the outputs."""
        if self._bests is not None:
            self._bests.close()
        if self._rank == 0 and (self._folder / BEST).is_dir():
            self._show_best()
        if self.saves or self.position.begun:  # else there is nothing that could be begun again
            self.save(points, finished=dict(summary), wait=True)
        self.close()

    def close(self) -> None:
        """Finish the write that is under way."""
        for one in (self._made[0] if self._made else None, self._bests):
            if one is not None:
                one.close()

    @property
    def _checkpointer(self) -> Checkpointer:
        return self._machinery()[0]

    @property
    def _beginnings(self) -> Beginnings:
        return self._machinery()[1]

    def _machinery(self) -> tuple[Checkpointer, Beginnings]:
        """Made when it is first needed: a run that only logs needs none."""
        if self._made is None:
            from hostler.sdk.checkpoint.checkpointer import Checkpointer
            from hostler.sdk.checkpoint.epoch_rng import Beginnings  # with all that tells of tensors: heavy
            from hostler.sdk.saving import policy_of

            policy = policy_of(self._every)
            self._each_epoch = policy.each_epoch
            beginnings = Beginnings(lambda: self._tracked)
            checkpointer = Checkpointer(
                self._folder,
                policy=policy,
                say=self._say,
                rank=self._rank,
                world=self._ranks,
                board=self._board if self._ranks > 1 else None,
            )
            checkpointer.at_boundary, checkpointer.on_resume = self._act, beginnings.goes_on
            self._made = checkpointer, beginnings
        return self._made

    def keep_best(self, metric: str, goal: str) -> None:
        known = self.best.get(metric)
        new = best_of(metric, goal, known.number if known else 0)
        if known is None or known.goal != new.goal:
            self.best[metric] = new

    def weigh(self, metrics: Mapping[str, Any], step: Any) -> None:
        """Keep the state if one of these is the best value so far. Never raises; waits for the copy alone."""
        number = recorder.step_of(step)
        if number is None:
            return
        for metric, best in list(self.best.items()):
            value = recorder.value_of(metrics, metric)
            if value is not None and best.after(value, number) is not best:
                self._better(metric, value, number)

    def _better(self, metric: str, value: float, step: int) -> None:
        with self._lock:  # several threads may log
            before = self.best[metric]
            after = before.after(value, step)
            if after is not before:
                self.best[metric] = after
                self._keep(after)

    def _keep(self, best: Best) -> None:
        kept = {name: one for name, one in self._tracked.items() if not _is_loader(one)}
        if not kept or self._rank:
            return
        from hostler.sdk.checkpoint import bests  # with all that tells of tensors

        if self._bests is None:
            self._bests = bests.Bests(self._folder / BEST, self._say)
        self._bests.keep(best, bests.places(self.best)[best.metric], kept)
        self.note_kept(best)

    def note_kept(self, best: Best) -> None:
        """Tell the worker that the state of this value is kept: the run is ranked by it."""
        if not self._rank and best.value is not None and math.isfinite(best.value):
            self._noted[best.metric] = {"goal": best.goal, "value": best.value, "step": best.step}
            self._tell()

    def forget_kept(self, metric: str) -> None:
        """Tell the worker that the state of the metric's best value is not what is kept."""
        if self._noted.pop(metric, None):
            self._tell()

    def _tell(self) -> None:
        from hostler.records.run import handoff  # few scripts keep a best state

        try:
            handoff.write(self._home.folder.best, self._noted)
        except OSError as error:
            self._say(f"the run will be ranked by its last value: {error}")

    def _show_best(self) -> None:
        from hostler.sdk.checkpoint.bests import show  # only where there is one

        for best in show(self._folder / BEST, self.best, self._home.folder.output / BEST):
            self.forget_kept(best.metric)
            self._say(
                f"the state at the best {best.metric} ({best.value:g}, step {best.step}) is lost: "
                f"{BEST} has another one"
            )

    def _state(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "run": self._home.run,
            "params": dict(self._params),
            "place": self.place,
            "position": self.position.state(),
            "beginnings": self._beginnings.state(self.position.depth),
            "memory": dict(self.memory),
            "best": {name: best.state() for name, best in self.best.items()},
        }


def _is_loader(thing: Any) -> bool:
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(thing, data.DataLoader)
