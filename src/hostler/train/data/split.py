"""The examples of one split: whole in memory, or one by one from somewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch

from hostler.frozen import dataclass

IMAGES, VECTORS, TEXT = "images", "vectors", "text"


class Items(Protocol):
    """Any map-style dataset: (input, target) by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...


@dataclass(frozen=True)
class Arrays:
    """Inputs and targets as two tensors, an example per row."""

    x: torch.Tensor
    y: torch.Tensor

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[index], self.y[index]

    def to(self, device: torch.device, *, channels_last: bool = False) -> Arrays:
        x = self.x.to(device)
        if channels_last and x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        return Arrays(x, self.y.to(device))

    @property
    def bytes(self) -> int:
        return self.x.nbytes + self.y.nbytes


@dataclass(frozen=True)
class Data:
    """Splits by the config's names. `n_classes` 0: targets are real numbers. `prepare`: what is still to be
    done with a batch of inputs on the device (bytes to floats, normalised). Of texts: how many tokens there
    are, and the one that fills short texts up (none: no text is short, and targets are the next tokens).
    `pixels`: the darkest and brightest value of prepared pictures, where they are known."""

    splits: Mapping[str, Arrays | Items]
    input_shape: tuple[int, ...]
    n_classes: int
    kind: str = VECTORS
    prepare: Callable[[torch.Tensor], torch.Tensor] | None = None
    classes: tuple[str, ...] = ()
    vocabulary: int = 0
    padding: int | None = None
    pixels: tuple[float, float] | None = None
