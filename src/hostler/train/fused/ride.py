"""The trainings of several runs, carried out together: the group goes on while any of them is there.

Each run is where its own checkpoint was: until the group comes there its row is trained for nobody. One that
leaves (done, early, diverged, pruned, failed) leaves its row behind in the same way, so that those who stay
have the same numbers to the bit whoever leaves, and whenever the process was killed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import torch

from hostler.errors import Diverged, HostlerError
from hostler.sdk.checkpoint.interval import Cost
from hostler.sdk.checkpoint.policy import Schedule
from hostler.sdk.checkpoint.state import PAYS
from hostler.sdk.leaving import Leaving
from hostler.sdk.saving import policy_of
from hostler.train import memory, parts
from hostler.train.fused.group import STRETCH, Group, Load, MemberResults
from hostler.train.fused.places import GroupPlace
from hostler.train.fused.rider import Rider

T = TypeVar("T")
LOOK = 0.5  # seconds of training between two looks at whether somebody should leave
SIGN = 10.0  # seconds between two signs of life of one that waits for the others
FIRST = 8  # steps of the first stretch
OWN = (Leaving, HostlerError, OSError)  # what is one run's own trouble, and ends it alone


class GroupTooLarge(Exception):
    """The runs do not fit on the device together; `fewer` of them might."""

    def __init__(self, fewer: int) -> None:
        super().__init__(fewer)
        self.fewer = fewer


class Ride:
    def __init__(self, riders: Sequence[Rider], device: torch.device, data: Load = parts.data_of) -> None:
        """GroupTooLarge if they do not fit, Apart if they cannot go together. `data` loads them."""
        self._data = data
        self._riders = list(riders)
        kept = riders[0].standing.place
        self._group = self._made(kept if kept is not None and kept.group else None, device)
        self._saves = Saves(riders[0].config.checkpoint_every)
        self._size, self._step, self._signed = FIRST, 0, time.monotonic()

    def _made(self, kept: GroupPlace | None, device: torch.device) -> Group:
        """The group as it was, or a new one; places that nobody has now are filled with anybody's numbers."""
        if kept is None:
            kept = GroupPlace(secrets.token_hex(8), len(self._riders), 0, True)
            shared, numbers = None, list(range(len(self._riders)))
        else:
            shared = kept.shared
            numbers = [rider.standing.place.number for rider in self._riders if rider.standing.place]
        configs = [self._riders[0].config] * kept.width
        for number, rider in zip(numbers, self._riders, strict=True):
            configs[number] = rider.config
        group = self._tried(lambda: Group(configs, device, shared=shared, data=self._data))
        self._tried(group.rehearse)
        for number, rider in zip(numbers, list(self._riders), strict=True):
            place = GroupPlace(kept.group, kept.width, number, group.shared)
            self._own(rider, partial(rider.enter, group, place))
        return group

    def _tried(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except (RuntimeError, MemoryError) as error:
            if isinstance(error, RuntimeError) and not memory.ran_out(error):
                raise
            raise GroupTooLarge(len(self._riders) // 2) from None

    def epochs(self) -> Iterator[list[tuple[Rider, dict[str, float]]]]:
        """Runs that have done an epoch, each with its row, until no run is left."""
        group = self._group
        self._step = min((rider.step for rider in self._riders), default=0)
        while self._riders:
            self._wake()
            if not self._riders:
                return
            epoch = self._step // group.span.each
            end = group.span.first(epoch) + group.span.steps(epoch)
            self._stretch(end)
            ended = self._step == end
            if ended:
                yield self._report(epoch)
            self._boundary(epoch_ended=ended)

    @property
    def epoch(self) -> int:
        """The number of the one that was done last, from 1."""
        return -(-self._step // self._group.span.each)

    def _wake(self) -> None:
        for rider in [one for one in self._riders if not one.awake and one.step == self._step]:
            self._own(rider, rider.wake)
        for rider in list(self._riders):
            if rider.awake and rider.is_done:  # it was killed after its last step
                self._finish(rider)

    @property
    def _awake(self) -> list[Rider]:
        return [rider for rider in self._riders if rider.awake]

    def _stretch(self, end: int) -> None:
        """Some steps, no further than where an epoch ends or another run wakes up."""
        sleeping = [rider.step for rider in self._riders if not rider.awake]
        upto = min([end, self._step + self._size, *sleeping])
        began = time.perf_counter()
        resultses = self._tried(lambda: self._group.stretch(self._step, upto - self._step))
        took = max(time.perf_counter() - began, 1e-6)
        self._size = max(1, min(STRETCH, 2 * self._size, int(LOOK * (upto - self._step) / took)))
        awake, self._step = self._awake, upto
        if time.monotonic() - self._signed >= SIGN:
            self._signed = time.monotonic()
            for rider in [one for one in self._riders if not one.awake]:
                self._own(rider, partial(rider.sleep, upto))
        for rider in awake:
            rider.step = upto
            self._own(
                rider,
                partial(_look, rider, [results for results in resultses if results.member == rider.number]),
            )

    def _report(self, epoch: int) -> list[tuple[Rider, dict[str, float]]]:
        found, rows = [], self._tried(lambda: self._group.rows(epoch))
        for rider in self._awake:
            row = rows[rider.number]
            if self._own(rider, partial(rider.report, row, epoch)):
                found.append((rider, row))
        return found

    def _boundary(self, *, epoch_ended: bool) -> None:
        """Finishes runs that are done, lets go those asked to leave, and saves the others if it is time."""
        for rider in self._awake:
            if rider.is_done or (epoch_ended and rider.ran_out):
                self._finish(rider)
            else:
                self._own(rider, rider.boundary)
        if self._riders and self._saves.due(self._step, epoch_ended=epoch_ended):
            self._saves.done(self._step, self._save)

    def _save(self) -> None:
        for rider in self._awake:
            self._own(rider, partial(rider.run.save, wait=True))

    def _finish(self, rider: Rider) -> None:
        if self._own(rider, rider.finish):
            self._riders.remove(rider)

    def _own(self, rider: Rider, act: Callable[[], None]) -> bool:
        """Acts for a single run; an error ends that run alone."""
        try:
            act()
        except OWN as error:
            self._riders.remove(rider)
            rider.end(error)
            return False
        return True


def _look(rider: Rider, told: Sequence[MemberResults]) -> None:
    for results in told:
        rider.look(results.points)
        if results.diverged:
            raise Diverged(results.diverged)


# When the trainings of a group are saved, all at one step: by the same rule as one alone, with the cost of
# all of them.


class Saves:
    def __init__(self, every: float | str | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy, self._clock = policy_of(every), clock
        self._schedule = Schedule(self._policy, clock, lambda line: None)
        # a group that is through within the shortest interval would save a hundred runs for nothing
        first = clock() + self._policy.least if every is None else float("-inf")
        self._saved, self._cost = first, 0.0

    def due(self, step: int, *, epoch_ended: bool) -> bool:
        if self._schedule.due(step):
            return True
        rested = self._clock() - self._saved >= PAYS * self._cost
        return epoch_ended and self._policy.each_epoch and rested

    def done(self, step: int, save: Callable[[], None]) -> None:
        """Save, and learn what it costs."""
        begun = self._clock()
        self._schedule.began(step)
        save()
        self._saved = self._clock()
        self._cost = self._saved - begun
        self._schedule.cost(Cost(self._cost, 0.0))
