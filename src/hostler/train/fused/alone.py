"""A training that began among others and goes on alone: its numbers agree up to rounding from here on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostler.train import memory, ranks, seeds
from hostler.train.config import Config
from hostler.train.epoch import Epoch
from hostler.train.fused import places
from hostler.train.fused.places import GroupPlace
from hostler.train.fused.ride import GroupTooLarge, Ride
from hostler.train.fused.rider import Rider

if TYPE_CHECKING:
    from hostler.sdk.run import Run


def went_on(run: Run, config: Config) -> Iterator[Epoch]:
    """Each epoch as it comes, as of any training."""
    places.put(run.memory, GroupPlace())
    rider = Rider(run, seeds.seeded(config, run, ranks.TrainRanks()), end=_raised)
    rider.folder.say("was trained together with others, and goes on alone: up to rounding the same")
    try:
        ride = Ride([rider], ranks.device_of(config))
        for epoch in ride.epochs():
            for one, row in epoch:
                average = one.average
                yield Epoch(row, number=ride.epoch, config=one.config, model=one.model, average=average)
    except GroupTooLarge:
        raise memory.refusal(config.batch_size, 1, 1, None) from None


def _raised(error: BaseException | None) -> None:
    if error is not None:
        raise error
