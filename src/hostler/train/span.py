"""The length of a training: its steps, cut into epochs. Pure."""

from __future__ import annotations

from hostler.frozen import dataclass
from hostler.train.config import Config


@dataclass(frozen=True)
class StepSpan:
    """`total` steps in epochs of `each`; the last may be shorter."""

    total: int
    each: int

    @property
    def epochs(self) -> int:
        return -(-self.total // self.each)

    def first(self, epoch: int) -> int:
        return epoch * self.each

    def steps(self, epoch: int) -> int:
        return min(self.each, self.total - self.first(epoch))


def of(config: Config, per_pass: int) -> StepSpan:
    """`per_pass`: steps of one pass over the data."""
    each = per_pass
    if config.steps_per_epoch is not None:
        each = config.steps_per_epoch
    elif config.samples_per_epoch is not None:
        each = -(-config.samples_per_epoch // config.batch_size)
    total = {
        "epoch": config.train_length * each,
        "step": config.train_length,
        "sample": -(-config.train_length // config.batch_size),
    }[config.train_length_unit]
    return StepSpan(total, max(each, 1))
