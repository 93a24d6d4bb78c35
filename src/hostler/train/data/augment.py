"""Random changes of image batches on the device: `flip`, `crop[_pad]`, `mixup[_alpha]`, `cutmix[_alpha]`.

All of a step's are drawn from one generator with a seed of seed and step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from hostler.errors import SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.data.order import mixed

Change = Callable[[torch.Tensor, torch.Tensor, torch.Generator], tuple[torch.Tensor, torch.Tensor]]
KINDS = ("flip", "crop", "mixup", "cutmix")


class Augment:
    """A batch as step sees it."""

    def __init__(self, names: Sequence[str], seed: int, n_classes: int) -> None:
        self._seed = seed
        self._changes = [_change(name, n_classes) for name in names]

    def __call__(
        self, x: torch.Tensor, y: torch.Tensor, step: int, rank: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self._changes:
            return x, y
        chance = torch.Generator(x.device).manual_seed(mixed(self._seed, step, rank))
        for change in self._changes:
            x, y = change(x, y, chance)
        return x, y


def check(names: Sequence[str]) -> None:
    for name in names:
        if name.split("_")[0] not in KINDS:
            raise SpecError(f"there is no augmentation {name!r}", did_you_mean(name, KINDS, ", ".join(KINDS)))


def _change(name: str, n_classes: int) -> Change:
    kind, _, rest = name.partition("_")
    try:
        number = float(rest) if rest else None
    except ValueError:
        raise SpecError(f"augmentation {name!r}: {rest!r} is not a number") from None
    if kind == "flip":
        return _flip
    if kind == "crop":
        return _crop(4 if number is None else int(number))
    return (_mixup if kind == "mixup" else _cutmix)(1.0 if number is None else number, n_classes)


def _flip(x: torch.Tensor, y: torch.Tensor, chance: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    turned = torch.rand(len(x), 1, 1, 1, device=x.device, generator=chance) < 0.5
    return torch.where(turned, x.flip(-1), x), y


def _crop(pad: int) -> Change:
    def change(
        x: torch.Tensor, y: torch.Tensor, chance: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        count, _, height, width = x.shape
        wide = F.pad(x, (pad, pad, pad, pad))
        moves = torch.randint(0, 2 * pad + 1, (2, count), device=x.device, generator=chance)
        rows = moves[0, :, None] + torch.arange(height, device=x.device)
        columns = moves[1, :, None] + torch.arange(width, device=x.device)
        each = torch.arange(count, device=x.device)[:, None, None]
        return wide.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2), y

    return change


def _share(alpha: float, chance: torch.Generator, device: torch.device) -> torch.Tensor:
    """A number from Beta(alpha, alpha)."""
    rates = torch.full((2,), alpha, device=device)
    first, second = torch._standard_gamma(rates, generator=chance)
    share: torch.Tensor = first / (first + second)
    return share


def _soft(y: torch.Tensor, n_classes: int) -> torch.Tensor:
    return y if y.is_floating_point() else F.one_hot(y, n_classes).float()


def _mixup(alpha: float, n_classes: int) -> Change:
    def change(
        x: torch.Tensor, y: torch.Tensor, chance: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        other = torch.randperm(len(x), device=x.device, generator=chance)
        share, soft = _share(alpha, chance, x.device), _soft(y, n_classes)
        return torch.lerp(x[other], x, share), torch.lerp(soft[other], soft, share)

    return change


def _cutmix(alpha: float, n_classes: int) -> Change:
    def change(
        x: torch.Tensor, y: torch.Tensor, chance: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        other = torch.randperm(len(x), device=x.device, generator=chance)
        height, width = x.shape[-2:]
        cut = (1 - _share(alpha, chance, x.device)).sqrt()
        middle = torch.rand(2, device=x.device, generator=chance)
        inside = _band(height, middle[0], cut)[:, None] & _band(width, middle[1], cut)[None, :]
        soft = _soft(y, n_classes)
        return torch.where(inside, x[other], x), torch.lerp(soft, soft[other], inside.float().mean())

    return change


def _band(length: int, middle: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    place = (torch.arange(length, device=middle.device) + 0.5) / length
    return (place - middle).abs() < part / 2
