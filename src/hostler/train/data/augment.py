"""Random changes of batches on the device: `flip`, `crop[_pad]`, `resizedcrop[_area]`,
`randaugment[_count[_strength]]`, `mixup[_alpha]`, `cutmix[_alpha]`.

All of a step's are drawn from one generator with a seed of seed and step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from hostler.errors import SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.data import randaugment
from hostler.train.data.order import mixed
from hostler.train.data.split import IMAGES, TEXT, Data

Change = Callable[[torch.Tensor, torch.Tensor, torch.Generator], tuple[torch.Tensor, torch.Tensor]]
KINDS = ("flip", "crop", "resizedcrop", "randaugment", "mixup", "cutmix")
SOFT = ("mixup", "cutmix")  # whose targets are shares of classes
PAD, AREA, ALPHA = 4, 0.08, 1.0
LONGEST = 4 / 3  # of the sides of a resized crop


class Augment:
    """A batch as step sees it. `pixels`: darkest and brightest value, where they are known."""

    def __init__(
        self, names: Sequence[str], seed: int, n_classes: int, pixels: tuple[float, float] | None = None
    ) -> None:
        self._seed = seed
        self._changes = [_change(name, n_classes, pixels) for name in names]

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
    """Before any data is read."""
    for name in names:
        kind = name.split("_")[0]
        if kind not in KINDS:
            raise SpecError(f"no augmentation named {name!r}", did_you_mean(kind, KINDS, ", ".join(KINDS)))
        _numbers(name)


def check_kind(names: Sequence[str], data: Data) -> None:
    """Pictures can be turned and cut; only classes can be mixed."""
    for name in names:
        kind = name.split("_")[0]
        if data.kind == TEXT or (data.kind != IMAGES and kind != "mixup"):
            raise SpecError(f"augmentation {name!r} is for pictures, but the data are {data.kind}")
        if kind in SOFT and not data.n_classes:
            raise SpecError(f"augmentation {name!r} mixes classes, but the targets are real numbers")


def _numbers(name: str) -> list[float]:
    """The numbers after the kind; an error if they are invalid."""
    kind, *rest = name.split("_")
    try:
        found = [float(one) for one in rest]
    except ValueError:
        raise SpecError(f"augmentation {name!r}: {'_'.join(rest)!r} is not a number") from None
    if len(found) > {"flip": 0, "randaugment": 2}.get(kind, 1):
        raise SpecError(f"augmentation {name!r} has a number too many")
    most = {"resizedcrop": 1.0}.get(kind, float("inf"))
    least = 0.0 if kind == "crop" or kind == "randaugment" else 1e-3
    if any(not least <= one <= most for one in found):
        raise SpecError(f"augmentation {name!r}: the number is not in [{least:g}, {most:g}]")
    if kind in ("crop", "randaugment") and any(not one.is_integer() for one in found[:1]):
        raise SpecError(f"augmentation {name!r}: {found[0]:g} is not a whole number")
    return found


def _change(name: str, n_classes: int, pixels: tuple[float, float] | None) -> Change:
    kind, numbers = name.split("_")[0], _numbers(name)
    first = numbers[0] if numbers else None
    if kind == "flip":
        return _flip
    if kind == "crop":
        return _crop(PAD if first is None else int(first))
    if kind == "resizedcrop":
        return _resized(AREA if first is None else first)
    if kind == "randaugment":
        return randaugment.change(numbers, pixels)
    return (_mixup if kind == "mixup" else _cutmix)(ALPHA if first is None else first, n_classes)


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


def _resized(least: float) -> Change:
    """A part of at least this area, of sides up to 4:3, scaled back to the whole."""

    def change(
        x: torch.Tensor, y: torch.Tensor, chance: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        drawn = torch.rand(4, len(x), device=x.device, generator=chance)
        area = least + (1 - least) * drawn[0]
        form = LONGEST ** (2 * drawn[1] - 1)
        sides = torch.stack([(area * form).sqrt(), (area / form).sqrt()], 1).clamp(max=1.0)
        place = (1 - sides) * (2 * drawn[2:].T - 1)
        moved = torch.cat([torch.diag_embed(sides), place[:, :, None]], 2)
        grid = F.affine_grid(moved.to(x.dtype), list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False), y

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
