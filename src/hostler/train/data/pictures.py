"""Pictures of one shape as bytes: decoded once where they are few, one by one else.

Whatever their source, they reach the device as bytes, and become numbers in [-1, 1] there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from hostler.errors import DamagedError, SpecError
from hostler.frozen import dataclass
from hostler.train.config import Config
from hostler.train.data.npz import PIXELS, scaled
from hostler.train.data.split import IMAGES, Arrays, Data, Items
from hostler.train.library import need

MEMORY = 2**28  # bytes of pictures that are decoded before the training begins
GRAY = ("1", "L", "I;16", "LA")
_LOOKED_AT = 64  # pictures, for whether all are gray


@dataclass(frozen=True)
class PictureShape:
    channels: int
    height: int
    width: int
    exact: bool = False  # pictures of another size are a mistake, not scaled

    @property
    def bytes(self) -> int:
        return self.channels * self.height * self.width


def build(splits: Mapping[str, Items], classes: tuple[str, ...], config: Config) -> Data:
    """Data of splits whose examples are (picture of PIL, class)."""
    for name, items in splits.items():
        if not len(items):
            raise SpecError(f"split {name!r} of {config.dataset} has no examples")
    shape = _shape(splits["train"], config)
    small = sum(len(one) for one in splits.values()) * shape.bytes <= MEMORY
    if config.data_on_device is False or not small:
        if shape.exact:
            raise SpecError(
                f"{config.dataset}: pictures that are loaded one by one need a size",
                hint=f"image_size: {min(shape.height, shape.width)}",
            )
        ready: dict[str, Arrays | Items] = {name: Loaded(one, shape) for name, one in splits.items()}
    else:
        ready = {name: _decoded(one, shape, config) for name, one in splits.items()}
    sides = (shape.channels, shape.height, shape.width)
    return Data(ready, sides, len(classes), IMAGES, scaled, classes, pixels=PIXELS)


class Loaded:
    """Pictures that are decoded when they are asked for."""

    def __init__(self, items: Items, shape: PictureShape) -> None:
        self._items, self._shape = items, shape

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture, target = self._items[index]
        return as_bytes(picture, self._shape), int(target)


def as_bytes(picture: Any, shape: PictureShape) -> torch.Tensor:
    """Channels first. Of another size: scaled to cover, and cut around its middle."""
    image_ops = need("PIL.ImageOps", "pillow", "pictures")
    picture = picture.convert("L" if shape.channels == 1 else "RGB")
    if picture.size != (shape.width, shape.height):
        picture = image_ops.fit(picture, (shape.width, shape.height), method=3)  # bicubic
    array = np.array(picture, dtype=np.uint8)
    return torch.from_numpy(array[None] if array.ndim == 2 else array.transpose(2, 0, 1).copy())


def _shape(items: Items, config: Config) -> PictureShape:
    seen = [items[place][0] for place in range(min(len(items), _LOOKED_AT))]
    asked = config.model_input_shape[0] if config.model_input_shape else None
    channels = asked or (1 if all(one.mode in GRAY for one in seen) else 3)
    if config.image_size is not None:
        return PictureShape(channels, config.image_size, config.image_size)
    width, height = seen[0].size
    return PictureShape(channels, height, width, exact=True)


def _decoded(items: Items, shape: PictureShape, config: Config) -> Arrays:
    x = torch.empty(len(items), shape.channels, shape.height, shape.width, dtype=torch.uint8)
    y = torch.empty(len(items), dtype=torch.long)
    for place in range(len(items)):
        picture, target = items[place]
        if shape.exact and picture.size != (shape.width, shape.height):
            raise SpecError(
                f"{config.dataset} has pictures of {shape.width}×{shape.height} and "
                f"{picture.size[0]}×{picture.size[1]}",
                hint="image_size: the side that all are scaled to",
            )
        x[place], y[place] = as_bytes(picture, shape), int(target)
    if int(y.min()) < 0:
        raise DamagedError(f"{config.dataset} has examples without a class")
    return Arrays(x, y)
