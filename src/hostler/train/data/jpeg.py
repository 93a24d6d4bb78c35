"""JPEG by torchvision: on a CPU by libjpeg, as Pillow decodes it; on a GPU by nvJPEG, many at once.

On a GPU pictures are scaled there, too, as Pillow does it: cut around the middle to the wanted sides' ratio,
cubic, rows before columns, rounded to bytes after each. What is not plain JPEG (another format, CMYK, colours
that should become gray) is left to Pillow.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from hostler.errors import MachineError
from hostler.train.data.encoded import check_growth, unreadable
from hostler.train.library import need

BEGIN = b"\xff\xd8\xff"
REACH = 2.0  # of the cubic filter, in pixels
SHARP = -0.5  # its parameter


class JpegDecoder:
    def __init__(self, channels: int) -> None:
        self._io = need("torchvision.io", "torchvision", "decoder: torchvision")
        self._mode = "GRAY" if channels == 1 else "RGB"
        self._modes = (
            ("L",) if channels == 1 else ("L", "RGB")
        )  # of Pillow's: those that torchvision does alike
        self._streams: dict[torch.device, Any] = {}
        self._try()

    def size(self, data: bytes, name: str) -> tuple[int, int] | None:
        """Width and height of a picture that torchvision takes."""
        from PIL import Image

        if not data.startswith(BEGIN):
            return None
        try:
            with Image.open(io.BytesIO(data), formats=("JPEG",)) as picture:
                check_growth(picture.size, data, name)
                return picture.size if picture.mode in self._modes else None
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise unreadable(name, error) from None

    def picture(self, data: bytes, name: str) -> Any | None:
        """A picture of Pillow, decoded on the host; None if it is not one for torchvision."""
        from PIL import Image

        if self.size(data, name) is None:
            return None
        try:
            x = self._io.decode_jpeg(_tensor(data), mode=self._mode)
        except RuntimeError as error:
            raise unreadable(name, error) from None
        return Image.fromarray(x[0].numpy() if self._mode == "GRAY" else x.permute(1, 2, 0).numpy())

    def batch(
        self,
        files: Mapping[int, tuple[bytes, str]],
        rest: Mapping[int, torch.Tensor],
        shape: tuple[int, int, int],
        device: torch.device,
    ) -> torch.Tensor:
        """Files by their places in the batch, decoded and scaled on the device; the rest is ready."""
        stream = self._stream(device)
        with torch.cuda.device(device), torch.cuda.stream(stream):
            x = torch.empty((len(files) + len(rest), *shape), dtype=torch.uint8, device=device)
            for place, ready in rest.items():
                x[place] = ready.to(device)
            for place, picture in zip(files, self._on_device(files, device), strict=True):
                x[place] = covered(picture, shape[1], shape[2])
            stream.synchronize()  # of this thread: the training's own stream does not wait
        return x

    def arrived(self, x: torch.Tensor) -> torch.Tensor:
        """The memory of a batch stays until the training's stream, too, is done with it."""
        if x.is_cuda:
            x.record_stream(torch.cuda.current_stream(x.device))
        return x

    def _on_device(self, files: Mapping[int, tuple[bytes, str]], device: torch.device) -> list[torch.Tensor]:
        if not files:
            return []
        tensors = [_tensor(data) for data, _ in files.values()]
        try:
            found: list[torch.Tensor] = self._io.decode_jpeg(tensors, mode=self._mode, device=device)
            return found
        except RuntimeError as error:
            raise unreadable(self._culprit(files, device), error) from None

    def _culprit(self, files: Mapping[int, tuple[bytes, str]], device: torch.device) -> str:
        """The first picture that cannot be decoded alone, by its name."""
        for data, name in files.values():
            try:
                self._io.decode_jpeg([_tensor(data)], mode=self._mode, device=device)
            except RuntimeError:
                return name
        return "a batch of pictures"

    def _stream(self, device: torch.device) -> Any:
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        return self._streams[device]

    def _try(self) -> None:
        """The compiled part of torchvision may be another torch's, which only its use tells."""
        from PIL import Image

        data = io.BytesIO()
        Image.new("L", (8, 8)).save(data, "JPEG")
        try:
            self._io.decode_jpeg(_tensor(data.getvalue()), mode=self._mode)
        except (RuntimeError, AttributeError) as error:
            first = str(error).partition("\n")[0]
            raise MachineError(
                f"decoder: torchvision cannot decode here: {first}",
                hint="a torchvision that fits this torch, or decoder: pillow",
            ) from None


def _tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


# Pictures scaled to cover a rectangle, and cut around their middle, as `PIL.ImageOps.fit` does.


def covered(x: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Bytes, channels first, where they lie."""
    high, wide = x.shape[1:]
    if (high, wide) == (height, width):
        return x
    left, top, right, bottom = box(wide, high, width / height)
    x = _round(x.float() @ _weights(wide, left, right, width).T.to(x.device))
    return _round(_weights(high, top, bottom, height).to(x.device) @ x).to(torch.uint8)


def box(wide: int, high: int, ratio: float) -> tuple[float, float, float, float]:
    """The largest part of a picture with this ratio of its sides, around its middle. Pure."""
    whole = wide / high
    across, down = float(wide), float(high)
    if whole > ratio:
        across = ratio * high
    elif whole < ratio:
        down = wide / ratio
    left, top = (wide - across) * 0.5, (high - down) * 0.5
    return left, top, left + across, top + down


@lru_cache(maxsize=512)
def _weights(count: int, first: float, last: float, wanted: int) -> torch.Tensor:
    """What each of so many pixels adds to each wanted one. Pure."""
    scale = (last - first) / wanted
    wide = max(scale, 1.0)
    centre = first + (np.arange(wanted)[:, None] + 0.5) * scale
    pixel = np.arange(count)[None, :]
    begin = np.maximum((centre - REACH * wide + 0.5).astype(int), 0)
    end = np.minimum((centre + REACH * wide + 0.5).astype(int), count)
    weight = np.where((pixel >= begin) & (pixel < end), _cubic((pixel - centre + 0.5) / wide), 0.0)
    return torch.from_numpy((weight / weight.sum(1, keepdims=True)).astype(np.float32))


def _cubic(x: Any) -> Any:
    x = np.abs(x)
    near = ((SHARP + 2) * x - (SHARP + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * SHARP - 4 * SHARP
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _round(x: torch.Tensor) -> torch.Tensor:
    return (x + 0.5).floor().clamp(0, 255)
