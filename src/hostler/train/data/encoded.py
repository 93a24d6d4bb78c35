"""Pictures as files, read by threads ahead of the step, wherever they lie."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch

from hostler.errors import DamagedError

GROWN, RATIO = 1 << 25, 200  # pixels of a picture, beyond which so many of them to a byte are damage


class Encoded(ABC):
    """Files of pictures by index, a class for each."""

    targets: torch.Tensor
    forks = True  # whether loader processes can read them, too

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return opened(self.read([index])[0], self.name(index)), int(self.targets[index])

    @abstractmethod
    def read(self, chosen: Sequence[int]) -> list[bytes]:
        """The files of these pictures, by any thread."""

    @abstractmethod
    def name(self, index: int) -> str:
        """Where a picture lies, for people."""

    def shuffled(self, count: int, seed: int, passes: int) -> torch.Tensor | None:
        """The order of one pass over them; None: any."""
        return None


def opened(data: bytes, name: str) -> Any:
    """A picture of Pillow, decoded."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as picture:
            check_growth(picture.size, data, name)
            picture.load()
            return picture
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise unreadable(name, error) from None


def check_growth(size: tuple[int, int], data: bytes, name: str) -> None:
    """Few bytes may say that they are a picture of any size: memory for it is not taken."""
    pixels = size[0] * size[1]
    if pixels > GROWN and pixels > RATIO * len(data):
        raise unreadable(name, f"{size[0]}×{size[1]} pixels in {len(data):,} bytes")


def unreadable(name: str, why: object) -> DamagedError:
    line = str(why).strip().partition("\n")[0]
    return DamagedError(f"{name} cannot be read as a picture: {line}")
