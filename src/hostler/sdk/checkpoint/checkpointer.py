"""Saves and restores a training's state: the loop waits only while memory is copied.

One checkpoint is written at a time, by a thread of its own; the next one waits for it, and the loop does not.
`save` comes back to it later; `follow` copies at once, and the newest such copy waits for its turn.
A disk that is full or cannot be written to is said and does no harm: training goes on, and the next save
tries again. A damaged one is never silently the beginning: the one before it, loudly, or an error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostler.errors import HostlerError, UsageError
from hostler.frozen import dataclass
from hostler.records.checkpoint.saved_folder import Mark
from hostler.sdk.checkpoint import rng
from hostler.sdk.checkpoint import taken as taking
from hostler.sdk.checkpoint.capture import Capture, rebuild
from hostler.sdk.checkpoint.folder import Shelf
from hostler.sdk.checkpoint.host_memory import HostMemory
from hostler.sdk.checkpoint.interval import Cost
from hostler.sdk.checkpoint.part import RankPart
from hostler.sdk.checkpoint.policy import SavePolicy, Schedule
from hostler.sdk.checkpoint.taken import StateCopy
from hostler.sdk.checkpoint.tracked import TrackedObject, tracked
from hostler.sdk.checkpoint.writer import Writer
from hostler.sdk.loader import LoaderPosition
from hostler.sdk.ranks.board import Board


@dataclass(frozen=True)
class Restored:
    """The position and state from which a training resumes."""

    step: int
    state: Mapping[str, Any]
    finished: Mapping[str, Any] | None
    points: int | None  # how many metric points had been logged
    folder: Path


@dataclass(frozen=True)
class _PendingSave:
    """A checkpoint that is to be written."""

    mark: Mark
    taken: StateCopy
    facts: Mapping[str, Any]
    waited: float  # seconds of the loop's
    memory: HostMemory  # where the copy lies
    first: Callable[[], object] | None = None  # done before it is written
    replaced: bool = True  # where it fails, another one comes by itself


def _unsaid(line: str) -> None:
    """Rank 0 says it."""


class Checkpointer:
    """`at_boundary` is called by a tracked loader between two batches, where a save is exact."""

    def __init__(
        self,
        folder: Path,
        *,
        policy: SavePolicy,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        rank: int = 0,
        world: int = 1,
        board: Board | None = None,
    ) -> None:
        self._say, self._clock, self._rank, self._world = say, clock, rank, world
        self._shelf = Shelf(folder, keep=policy.keep, rank=rank, world=world, say=say, board=board)
        self._schedule = Schedule(policy, clock, say if rank == 0 else _unsaid)  # rank 0 chooses when
        self._memory, self._second = HostMemory(), HostMemory()
        self._tracked: dict[str, TrackedObject] = {}
        self._safe = SafePoints(lambda: self.at_boundary())
        self.at_boundary: Callable[[], None] = lambda: None
        self.on_resume: Callable[[], None] = lambda: None  # what else is put back where a loop goes on
        self._part: RankPart | None = None  # restored; holds what no object has asked for yet
        self._last: Mark | None = None
        self._writer = Writer(self._write, self._shelf.prune)
        self._failed: _PendingSave | None = None  # of `follow`: nothing comes in its place by itself
        self._owed = False  # a save was asked for while another was being written
        self._warned: set[str] = set()
        self._late_at: Mark | None = None  # the save for which another one waited, and was said to
        self._warmed = False
        self._pid = os.getpid()

    def track(self, **objects: Any) -> None:
        """Keep these from now on; what a restored checkpoint has for them is loaded now."""
        for name, value in objects.items():
            if name in self._tracked:
                raise UsageError(f"{name} is tracked already", hint="give it another name")
            self._tracked[name] = tracked(name, value, self._safe, self.resume_rng)
            self._safe.watch(value)
            self._give(name)
        self.resume_rng()

    def restore(self) -> Restored | None:
        """The newest whole checkpoint, every byte checked; None if there is none."""
        found = self._shelf.newest()
        if found is None:
            return None
        saved, self._part = found
        self._last = saved.mark
        self._schedule.began(saved.mark.step)
        for name in self._tracked:
            self._give(name)
        for lost in saved.record.get("lost", ()):
            self._say(f"the checkpoint was saved without {lost}")
        return Restored(
            saved.mark.step,
            self._rebuilt("state"),
            rebuild(saved.record.get("finished"), {}),
            saved.record.get("points"),
            saved.folder,
        )

    def resume_rng(self) -> bool:
        """Put all shared generators back to where the checkpoint has them: called where the loop goes on.
        False, and nothing is done, without a restored checkpoint or after the first save."""
        self.on_resume()
        if self._part is None:
            return False
        for trouble in rng.put_back(self._rebuilt("rng")):
            self._warn(f"not restored: {trouble}")
        return True

    def epoch_began(self) -> None:
        self._safe.epoch_began()

    def due(self, step: int) -> bool:
        """Whether a checkpoint should be made now; never while one is being written."""
        self._warm()
        if not (self._owed or self._schedule.due(step)) or self._pid != os.getpid():
            return False
        if self._writer.busy:
            self._late()
            return False
        return True

    def save(
        self,
        step: int,
        state: Mapping[str, Any],
        *,
        finished: Mapping[str, Any] | None = None,
        points: int | None = None,
        wait: bool = False,
        first: Callable[[], object] | None = None,
    ) -> None:
        """Copy everything now, write it beside the loop, once `first` has returned there. While another is
        being written it is put off, unless `wait` or `finished`: those come back when it is durable."""
        if self._pid != os.getpid():
            return  # a fork of the training, such as a loader's worker
        durable = wait or finished is not None
        if durable or self._rank:  # what rank 0 has chosen, others must not put off: it waits for their parts
            self.wait()
        if self._writer.busy:
            self._late()
            return
        mark = Mark(step, self._last.again + 1 if self._last and self._last.step == step else 0)
        points = state.get("points") if points is None else points
        job = self._job(mark, state, {"finished": Capture.plain(finished), "points": points}, self._memory)
        if job is None:
            self._shelf.refuse(mark)
            return
        self._last, self._owed = mark, False
        self._writer.give(replace(job, first=first))
        if durable:
            self.wait()
        if finished is not None:  # the process may be at its end
            self._shelf.prune()

    def follow(self, number: int, state: Mapping[str, Any]) -> int | None:
        """Copy everything now, and write it after what is being written; it replaces what waits for that, and
        what was kept under its number in another course of the training. Returns what `wait` takes."""
        if self._pid != os.getpid():
            return None
        self._failed = None
        writing = self._writer.withdraw()
        memory = self._second if writing is not None and writing.memory is self._memory else self._memory
        mark = Mark(number)
        job = self._job(mark, state, {"finished": None, "points": None}, memory)
        if job is None:
            self._writer.give_up()
            return None
        return self._writer.give(replace(job, first=lambda: self._shelf.remove(mark), replaced=False))

    def wait(self, timeout: float | None = None, number: int | None = None) -> bool:
        """Until what was saved, or this one or a later one, is durable; False if it took longer."""
        return self._writer.wait(timeout, number)

    def close(self) -> None:
        """Wait for what is being written, and let go of everything that was tracked."""
        self.wait()
        if self._failed is not None:
            self._writer.give(self._failed)
            self.wait()
        self._shelf.prune()
        for tracked_object in self._tracked.values():
            tracked_object.close()
        self._safe.close()
        self._tracked, self._part = {}, None
        self._memory, self._second = HostMemory(), HostMemory()

    def _job(
        self, mark: Mark, state: Mapping[str, Any], facts: Mapping[str, Any], memory: HostMemory
    ) -> _PendingSave | None:
        begun = self._clock()
        self._schedule.began(mark.step)
        taken = self._take(state, memory)
        if taken is None:
            return None
        lost = [str(unsavable) for unsavable in taken.captured.lost]
        return _PendingSave(mark, taken, {**facts, "lost": lost}, self._clock() - begun, memory)

    def _take(self, state: Mapping[str, Any], memory: HostMemory) -> StateCopy | None:
        """Everything, copied to host memory; None if that failed, which is said."""
        try:
            taken = taking.take(memory, self._tracked, state)
        except Exception as error:  # a state_dict of the user's, or memory: the training goes on
            self._say(f"checkpoint not saved, will try again: {type(error).__name__}: {error}")
            return None
        self._forget()
        for lost in taken.captured.lost:
            self._warn(f"cannot be saved in checkpoints: {lost}")
        return taken

    def _forget(self) -> None:
        """The training has moved on from what was restored."""
        if self._part is not None:
            for name in self._part.tree["objects"]:
                if name not in self._tracked:
                    self._warn(
                        f"the checkpoint contains {name}, which is not tracked now: its state is dropped"
                    )
            self._part = None

    def _write(self, job: _PendingSave) -> None:
        if job.first is not None:
            job.first()
        job.taken.done()
        begun, captured = self._clock(), job.taken.captured
        try:
            self._shelf.put(job.mark, captured.tree, captured.plan.header, job.taken.data, job.facts)
        except (OSError, HostlerError) as error:
            self._failed = None if job.replaced else job
            self._say(f"checkpoint of step {job.mark.step} not saved, the next one will try again: {error}")
            return
        self._failed = None
        self._schedule.cost(Cost(job.waited, self._clock() - begun))

    def _warm(self) -> None:
        """After the first step the size is known: have the memory ready before it is needed. Not with several
        ranks: a state_dict may need them all."""
        if self._warmed or not self._tracked or self._world > 1:
            return
        self._warmed = True
        try:
            taking.prepare(self._memory, self._tracked)
        except Exception:  # the save will say so
            pass

    def _late(self) -> None:
        self._owed = True
        if self._late_at != self._last and self._last is not None:
            self._late_at = self._last
            self._say(
                f"a checkpoint is delayed: the one of step {self._last.step} is still being written; "
                "the training goes on"
            )

    def _give(self, name: str) -> None:
        """Load a tracked object's state from the restored checkpoint."""
        if self._part is None:
            return
        if name not in self._part.tree["objects"]:
            self._warn(f"the checkpoint does not contain {name}: it keeps its current state")
            return
        tracked_object = self._tracked[name]
        made = self._part.tree["objects"][name]
        tracked_object.load(rebuild(made, self._part.tensors, share=tracked_object.copies))

    def _rebuilt(self, section: str) -> Any:
        return rebuild(self._part.tree[section], self._part.tensors) if self._part else {}

    def _warn(self, line: str) -> None:
        """Once each."""
        if line not in self._warned:
            self._warned.add(line)
            self._say(line)


# Finds the batches between which a save is exact: the loop's body is over and holds no other state.
#
# Only in the first iteration of a tracked loader in an epoch: one inside its body is the middle of that body,
# and what follows it would be left out or done twice. Not while gradients are being gathered over several
# batches (a tracked optimiser has not stepped since the last one).


PATIENCE = 100  # batches after which an optimiser that never steps is no longer waited for


class SafePoints:
    def __init__(self, reached: Callable[[], None]) -> None:
        self._reached = reached
        self._steps: int | None = None  # of tracked optimisers since the last batch; None: none is tracked
        self._idle = 0
        self._first: tuple[str, int] | None = None  # of this epoch: the loader, and which of its iterations
        self._epochs = False
        self._early: list[LoaderPosition] = []  # iterated before the first epoch
        self._hooks: list[Any] = []

    def watch(self, value: Any) -> None:
        """An optimiser tells when it steps; where it wraps another, as Accelerate's does, that one tells."""
        if hasattr(value, "register_step_post_hook") and not hasattr(value, "_optimizer_step_post_hooks"):
            value = getattr(value, "optimizer", None)
        hook = getattr(value, "register_step_post_hook", None)
        if callable(hook):
            self._steps = 0
            self._hooks.append(hook(self._stepped))

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def epoch_began(self) -> None:
        for position in self._early:
            position.take_back()
        self._early = []
        self._epochs, self._first = True, None

    def begins(self, position: LoaderPosition) -> None:
        """A loader is iterated anew. Where nobody counts epochs, that is the next one of the same loader."""
        if not self._epochs:
            self._early.append(position)
        again = not self._epochs and self._first is not None and self._first[0] == position.name
        if self._first is None or again:
            self._first = position.name, position.iteration
            if self._steps is not None:  # one of the last epoch's last batch says nothing of this first batch
                self._steps = 0

    def between(self, position: LoaderPosition) -> None:
        """A loader is about to give its next batch."""
        if self._first is None:  # its iteration is older than the epoch
            self._first = position.name, position.iteration
        if self._first == (position.name, position.iteration) and self._whole():
            self._reached()

    def _whole(self) -> bool:
        if self._steps is None:
            return True
        self._idle = 0 if self._steps else self._idle + 1
        stepped, self._steps = self._steps > 0, 0
        return stepped or self._idle > PATIENCE

    def _stepped(self, *_: Any) -> None:
        if self._steps is not None:
            self._steps += 1
