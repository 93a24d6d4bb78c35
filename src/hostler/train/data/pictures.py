"""Pictures of one shape as bytes: decoded once where they are few, one by one else.

Whatever their source, they reach the device as bytes, and become numbers in [-1, 1] there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from hostler.errors import DamagedError, SpecError
from hostler.frozen import dataclass
from hostler.train.config import TORCHVISION, Config
from hostler.train.data.ahead import held
from hostler.train.data.encoded import Encoded, opened
from hostler.train.data.jpeg import JpegDecoder
from hostler.train.data.npz import PIXELS, scaled
from hostler.train.data.split import IMAGES, Arrays, Data, Gathered, Items, room
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
    ready: dict[str, Arrays | Items]
    shape = _shape(splits["train"], config)
    small = sum(len(one) for one in splits.values()) * shape.bytes <= MEMORY
    if config.data_on_device is False or not small:
        if shape.exact:
            raise SpecError(
                f"{config.dataset}: pictures that are loaded one by one need a size",
                hint=f"image_size: {min(shape.height, shape.width)}",
            )
        ready = {name: _loaded(one, shape, config) for name, one in splits.items()}
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


class Decoded(Gathered):
    """Pictures of one shape as bytes, out of files that threads read. An exact shape refuses another size."""

    def __init__(self, files: Encoded, shape: PictureShape, config: Config) -> None:
        self._files, self._shape, self._dataset = files, shape, config.dataset
        self.targets, self.shape = files.targets, (shape.channels, shape.height, shape.width)
        self.forks = files.forks
        self._jpeg = JpegDecoder(shape.channels) if config.decoder == TORCHVISION else None

    def gather(self, chosen: Sequence[int], device: torch.device) -> torch.Tensor:
        files = self._files.read(chosen)
        if self._jpeg is not None and device.type == "cuda":
            return self._on_device(self._jpeg, files, chosen, device)
        x = room((len(chosen), *self.shape), device)
        for place, (index, data) in enumerate(zip(chosen, files, strict=True)):
            x[place] = self._bytes(data, index)
        return x

    def arrived(self, x: torch.Tensor) -> torch.Tensor:
        return x if self._jpeg is None else self._jpeg.arrived(x)

    def shuffled(self, count: int, seed: int, passes: int) -> torch.Tensor:
        found = self._files.shuffled(count, seed, passes)
        return super().shuffled(count, seed, passes) if found is None else found

    def _bytes(self, data: bytes, index: int) -> torch.Tensor:
        name = self._files.name(index)
        picture = self._jpeg.picture(data, name) if self._jpeg is not None else None
        if picture is None:
            picture = opened(data, name)
        _check_size(picture.size, self._shape, self._dataset)
        return as_bytes(picture, self._shape)

    def _on_device(
        self, jpeg: JpegDecoder, files: Sequence[bytes], chosen: Sequence[int], device: torch.device
    ) -> torch.Tensor:
        """What the decoder does not take goes by the host."""
        by_device, by_host = dict[int, tuple[bytes, str]](), dict[int, torch.Tensor]()
        for place, (index, data) in enumerate(zip(chosen, files, strict=True)):
            name = self._files.name(index)
            size = jpeg.size(data, name)
            if size is None:
                by_host[place] = self._bytes(data, index)
            else:
                _check_size(size, self._shape, self._dataset)
                by_device[place] = (data, name)
        return jpeg.batch(by_device, by_host, self.shape, device)


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


def _loaded(items: Items, shape: PictureShape, config: Config) -> Items:
    return Decoded(items, shape, config) if isinstance(items, Encoded) else Loaded(items, shape)


def _decoded(items: Items, shape: PictureShape, config: Config) -> Arrays:
    if isinstance(items, Encoded):
        return held(Decoded(items, shape, config), torch.device("cpu"), config.num_workers)
    x = torch.empty(len(items), shape.channels, shape.height, shape.width, dtype=torch.uint8)
    y = torch.empty(len(items), dtype=torch.long)
    for place in range(len(items)):
        picture, target = items[place]
        _check_size(picture.size, shape, config.dataset)
        x[place], y[place] = as_bytes(picture, shape), int(target)
    if int(y.min()) < 0:
        raise DamagedError(f"{config.dataset} has examples without a class")
    return Arrays(x, y)


def _check_size(size: tuple[int, int], shape: PictureShape, dataset: str) -> None:
    if shape.exact and size != (shape.width, shape.height):
        raise SpecError(
            f"{dataset} has pictures of {shape.width}×{shape.height} and {size[0]}×{size[1]}",
            hint="image_size: the side that all are scaled to",
        )
