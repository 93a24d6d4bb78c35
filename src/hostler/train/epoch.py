"""The result of an epoch, given to the caller of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.train.config import Config

if TYPE_CHECKING:
    import torch


class Epoch(dict[str, float]):
    """A row of stats.csv by column, and the models as they are: to be looked at, not changed."""

    def __init__(
        self,
        row: dict[str, float],
        *,
        number: int,
        config: Config,
        model: torch.nn.Module,
        average: torch.nn.Module | None,
    ) -> None:
        super().__init__(row)
        self.number, self.config, self.model, self.average = number, config, model, average
