"""Pictures as a published model knows them: of the mean and deviation that it was trained with.

It is a hook in front of the model, not a layer: the names of its weights stay those of everybody else. Its
numbers are buffers of the model that nobody saves, and so lie where the model does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hostler.train.data.split import Data

MEAN, DEVIATION = "pixel_mean", "pixel_deviation"


class Centred:
    """Scales pictures of [low, high] to the model's own range; deep copies of the model keep it."""

    def __init__(
        self,
        model: torch.nn.Module,
        mean: Sequence[float],
        deviation: Sequence[float],
        pixels: tuple[float, float],
    ) -> None:
        low, high = pixels
        for name, numbers in (
            (MEAN, [low + number * (high - low) for number in mean]),
            (DEVIATION, [number * (high - low) for number in deviation]),
        ):
            model.register_buffer(name, torch.tensor(numbers)[:, None, None], persistent=False)

    def __call__(self, module: torch.nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        x = given[0]
        mean, deviation = getattr(module, MEAN), getattr(module, DEVIATION)
        return ((x - mean.to(x.dtype)) / deviation.to(x.dtype), *given[1:])


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
    model.register_forward_pre_hook(Centred(model, mean, deviation, data.pixels))
