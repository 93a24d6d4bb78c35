"""Residual networks for small pictures, begun by one 3×3 convolution and no pooling.

Of depth 18, 34, 50, 101 and 152: the four stages of the large ones (50 and more with bottlenecks). Of any
other depth 6n+2: the three narrow stages made for CIFAR, whose ways around have no weights.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from hostler.errors import SpecError

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
