"""Pictures as a published model knows them: of the mean and deviation that it was trained with.

It is a hook in front of the model, not a layer: the names of its weights stay those of everybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hostler.train.data.split import Data


class Centred:
    """Scales pictures of [low, high] to the model's own range; deep copies of the model keep it."""

    def __init__(
        self, mean: Sequence[float], deviation: Sequence[float], pixels: tuple[float, float]
    ) -> None:
        low, high = pixels
        self._mean = torch.tensor([low + one * (high - low) for one in mean])[:, None, None]
        self._deviation = torch.tensor([one * (high - low) for one in deviation])[:, None, None]

    def __call__(self, module: torch.nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        x = given[0]
        return ((x - self._mean.to(x)) / self._deviation.to(x), *given[1:])


def centre(
    model: torch.nn.Module, data: Data, mean: Sequence[float] | None, deviation: Sequence[float] | None
) -> None:
    """Where the range of the pictures is known; gray ones get the mean over the colours."""
    if data.pixels is None or not mean or not deviation:
        return
    channels = data.input_shape[0]
    if channels != len(mean):
        mean = [sum(mean) / len(mean)] * channels
        deviation = [sum(deviation) / len(deviation)] * channels
    model.register_forward_pre_hook(Centred(mean, deviation, data.pixels))
