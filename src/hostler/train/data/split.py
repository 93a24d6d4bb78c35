"""The examples of one split: whole in memory, or from somewhere, one by one or a batch at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from hostler.frozen import dataclass
from hostler.train.data.order import shuffled

IMAGES, VECTORS, TEXT = "images", "vectors", "text"


class Items(Protocol):
    """Any map-style dataset: (input, target) by index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...


class Gathered(ABC):
    """Pictures as bytes that are read a batch at a time, by threads ahead of the step. Targets lie in memory:
    a class for each example."""

    targets: torch.Tensor
    shape: tuple[int, int, int]  # of a picture, channels first
    quick = False  # whether all of them may be read before a training, if the device has room

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        here = torch.device("cpu")
        place = range(len(self))[index]
        return self.arrived(self.gather([place], here))[0], self.targets[place]

    @property
    def bytes(self) -> int:
        """How many they are, decoded."""
        channels, height, width = self.shape
        return len(self) * channels * height * width

    @abstractmethod
    def gather(self, chosen: Sequence[int], device: torch.device) -> torch.Tensor:
        """The chosen pictures, as they lie there: by any thread, for a batch on this device."""

    def arrived(self, x: torch.Tensor) -> torch.Tensor:
        """Gathered pictures with their channels first, once they are on the device."""
        return x

    def shuffled(self, count: int, seed: int, passes: int) -> torch.Tensor:
        """The order of one pass over them: any, unless their place makes some orders slow."""
        return shuffled(count, seed, passes)


def room(shape: Sequence[int], device: torch.device) -> torch.Tensor:
    """Memory for bytes that will be sent to this device. A GPU's is pinned: torch keeps such memory, and
    gives it out again once the device has read it."""
    return torch.empty(tuple(shape), dtype=torch.uint8, pin_memory=device.type == "cuda")


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
