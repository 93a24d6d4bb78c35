"""Small networks for small pictures: `lenet`, `vgg_D`, `resnet_D`, `wrn_D_W[_drop]`.

They take any picture of at least 8×8 (vgg 32×32) with any number of channels.
"""

from __future__ import annotations

import re

import torch
from torch import nn
from torch.nn import functional as F

from hostler.errors import SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data.split import Data

_HINT = "tiny/lenet, tiny/vgg_16, tiny/resnet_18, tiny/resnet_20, tiny/wrn_16_4, tiny/wrn_28_10_0.3"
_VGG: dict[int, tuple[int, ...]] = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}


def build(rest: str, config: Config, data: Data, outputs: int) -> nn.Module:
    shape = config.model_input_shape or data.input_shape
    if len(shape) != 3:
        raise SpecError(
            f"tiny/{rest} takes pictures, but the inputs have the shape {'×'.join(map(str, shape))}",
            hint="model: linear",
        )
    if rest == "lenet":
        return LeNet(shape, outputs)
    for pattern, make in (
        (r"vgg_(\d+)", _vgg),
        (r"resnet_(\d+)", _resnet),
        (r"wrn_(\d+)_(\d+)(?:_([\d.]+))?", _wide),
    ):
        match = re.fullmatch(pattern, rest)
        if match:
            return make(match, shape, outputs)
    known = [name.strip() for name in _HINT.split(",")]
    raise SpecError(f"no model named tiny/{rest}", did_you_mean(f"tiny/{rest}", known, _HINT))


class LeNet(nn.Sequential):
    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        channels, height, width = shape
        if min(height, width) < 8:
            raise SpecError(f"tiny/lenet needs pictures of at least 8×8, these are {height}×{width}")
        flat = 16 * _after(height) * _after(width)
        super().__init__(
            nn.Conv2d(channels, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(flat, 120), nn.ReLU(),
            nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, outputs),
        )  # fmt: skip


def _after(length: int) -> int:
    return length // 2 // 2


def _vgg(match: re.Match[str], shape: tuple[int, ...], outputs: int) -> nn.Module:
    depth = int(match[1])
    if depth not in _VGG:
        raise SpecError(f"no vgg has depth {depth}", hint=f"depths: {', '.join(map(str, _VGG))}")
    layers: list[nn.Module] = []
    channels = shape[0]
    for count, width in zip(_VGG[depth], (64, 128, 256, 512, 512), strict=True):
        for _ in range(count):
            layers += [
                nn.Conv2d(channels, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
            channels = width
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, outputs))


def _resnet(match: re.Match[str], shape: tuple[int, ...], outputs: int) -> nn.Module:
    return resnet(int(match[1]), shape[0], outputs)


def _wide(match: re.Match[str], shape: tuple[int, ...], outputs: int) -> nn.Module:
    depth, factor, drop = int(match[1]), int(match[2]), float(match[3] or 0)
    if depth < 10 or (depth - 4) % 6:
        raise SpecError(f"a wide resnet has a depth of 6n+4, not {depth}", hint="10, 16, 22, 28, 40")
    if factor < 1 or not 0 <= drop < 1:
        raise SpecError(f"wrn_{depth}_{factor}_{drop:g}: the width is at least 1, the dropout in [0, 1)")
    layers: list[nn.Module] = [nn.Conv2d(shape[0], 16, 3, padding=1, bias=False)]
    before = 16
    for stage, width in enumerate((16 * factor, 32 * factor, 64 * factor)):
        for place in range((depth - 4) // 6):
            layers.append(Wide(before, width, 2 if stage and not place else 1, drop))
            before = width
    end = [
        nn.BatchNorm2d(before),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(before, outputs),
    ]
    return nn.Sequential(*layers, *end)


class Wide(nn.Module):
    """Norm and activation before each convolution, dropout between the two."""

    def __init__(self, before: int, width: int, stride: int, drop: float) -> None:
        super().__init__()
        self.norm_one = nn.BatchNorm2d(before)
        self.one = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.norm_two = nn.BatchNorm2d(width)
        self.two = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.drop = nn.Dropout(drop)
        same = before == width and stride == 1
        self.around = nn.Identity() if same else nn.Conv2d(before, width, 1, stride, bias=False)
        self._same = same

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ready = F.relu(self.norm_one(x))
        out = self.one(ready)
        out = self.two(self.drop(F.relu(self.norm_two(out))))
        around: torch.Tensor = x if self._same else self.around(ready)
        return out + around  # type: ignore[no-any-return]


# Residual networks for small pictures, begun by one 3×3 convolution and no pooling.
#
# Of depth 18, 34, 50, 101 and 152: the four stages of the large ones (50 and more with bottlenecks). Of any
# other depth 6n+2: the three narrow stages made for CIFAR, whose ways around have no weights.


_LARGE: dict[int, tuple[int, ...]] = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
_BOTTLENECKS = 50  # from this depth on


def resnet(depth: int, channels: int, outputs: int) -> nn.Module:
    if depth in _LARGE:
        return _large(depth, channels, outputs)
    if depth < 8 or (depth - 2) % 6:
        large = ", ".join(map(str, _LARGE))
        raise SpecError(
            f"a tiny resnet has a depth of 6n+2 or one of {large}, not {depth}",
            hint="8, 14, 18, 20, 32, 34, 44",
        )
    layers: list[nn.Module] = [*_begin(channels, 16)]
    before = 16
    for stage, width in enumerate((16, 32, 64)):
        for place in range((depth - 2) // 6):
            layers.append(Basic(before, width, 2 if stage and not place else 1))
            before = width
    return nn.Sequential(*layers, *_end(before, outputs))


def _large(depth: int, channels: int, outputs: int) -> nn.Module:
    kind = Bottleneck if depth >= _BOTTLENECKS else Projected
    layers: list[nn.Module] = [*_begin(channels, 64)]
    before = 64
    for stage, (count, width) in enumerate(zip(_LARGE[depth], (64, 128, 256, 512), strict=True)):
        for place in range(count):
            layers.append(kind(before, width, 2 if stage and not place else 1))
            before = width * kind.grows
    return nn.Sequential(*layers, *_end(before, outputs))


class Basic(nn.Module):
    """Two convolutions and the way around them; what changes in shape on that way is padded with zeros."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.norm_one = nn.BatchNorm2d(width)
        self.two = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm_two = nn.BatchNorm2d(width)
        self._stride, self._more = stride, width - before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.norm_one(self.one(x)))
        out = self.norm_two(self.two(out))
        around = x[:, :, :: self._stride, :: self._stride] if self._stride > 1 else x
        if self._more:
            around = F.pad(around, (0, 0, 0, 0, self._more // 2, self._more - self._more // 2))
        return F.relu(out + around)


class Projected(nn.Module):
    """Two convolutions; a third on the way around where the shape changes."""

    grows = 1

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.inside = nn.Sequential(*_conv(before, width, 3, stride), nn.ReLU(), *_conv(width, width, 3))
        self.around = _around(before, width, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.inside(x) + self.around(x))


class Bottleneck(nn.Module):
    """Narrow, convolved, and four times as wide again."""

    grows = 4

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = width * self.grows
        self.inside = nn.Sequential(
            *_conv(before, width, 1),
            nn.ReLU(),
            *_conv(width, width, 3, stride),
            nn.ReLU(),
            *_conv(width, after, 1),
        )
        self.around = _around(before, after, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.inside(x) + self.around(x))


def _conv(before: int, width: int, side: int, stride: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(before, width, side, stride, padding=side // 2, bias=False),
        nn.BatchNorm2d(width),
    ]


def _around(before: int, width: int, stride: int) -> nn.Module:
    return (
        nn.Identity() if before == width and stride == 1 else nn.Sequential(*_conv(before, width, 1, stride))
    )


def _begin(channels: int, width: int) -> list[nn.Module]:
    return [*_conv(channels, width, 3), nn.ReLU()]


def _end(width: int, outputs: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, outputs)]
