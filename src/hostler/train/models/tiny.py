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
from hostler.train.models.resnet import resnet

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
            f"tiny/{rest} takes pictures, and the inputs have the shape {'×'.join(map(str, shape))}",
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
