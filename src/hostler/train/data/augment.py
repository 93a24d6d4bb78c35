"""Random changes of batches on the device: `flip`, `crop[_pad]`, `resizedcrop[_area]`,
`randaugment[_count[_strength]]`, `mixup[_alpha]`, `cutmix[_alpha]`.

All of a step's are drawn by a key of seed and step. Batches of several trainings are changed at once: inputs
are `[member, batch, …]`, and each member has a key of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from hostler.errors import SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.data import randaugment
from hostler.train.data.chance import Chance
from hostler.train.data.order import mixed
from hostler.train.data.split import IMAGES, TEXT, Data

Batch = tuple[torch.Tensor, torch.Tensor]
Change = Callable[[torch.Tensor, torch.Tensor, Chance], Batch]
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
        self._kinds = [name.split("_")[0] for name in names]
        self._changes = [_change(name, n_classes, pixels) for name in names]

    def __call__(self, x: torch.Tensor, y: torch.Tensor, step: int, rank: int) -> Batch:
        """The batch of one training."""
        if not self._changes:
            return x, y
        key = torch.tensor([mixed(self._seed, step, rank)])
        tensor = key.pin_memory().to(x.device, non_blocking=True) if x.is_cuda else key
        x, y = self.changed(x[None], y[None], Chance(tensor, key))
        return x[0], y[0]

    def changed(self, x: torch.Tensor, y: torch.Tensor, chance: Chance) -> Batch:
        """The batches of all members."""
        for change in self._changes:
            x, y = change(x, y, chance)
        return x, y

    @property
    def decides_on_host(self) -> bool:
        """Whether the host chooses what is done, so that it cannot be recorded."""
        return any(kind == "randaugment" for kind in self._kinds)

    @property
    def softens(self) -> bool:
        """Whether targets become shares of classes."""
        return any(kind in SOFT for kind in self._kinds)


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
        numbers = [float(one) for one in rest]
    except ValueError:
        raise SpecError(f"augmentation {name!r}: {'_'.join(rest)!r} is not a number") from None
    if len(numbers) > {"flip": 0, "randaugment": 2}.get(kind, 1):
        raise SpecError(f"augmentation {name!r} has a number too many")
    most = {"resizedcrop": 1.0}.get(kind, float("inf"))
    least = 0.0 if kind == "crop" or kind == "randaugment" else 1e-3
    if any(not least <= number <= most for number in numbers):
        raise SpecError(f"augmentation {name!r}: the number is not in [{least:g}, {most:g}]")
    if kind in ("crop", "randaugment") and any(not number.is_integer() for number in numbers[:1]):
        raise SpecError(f"augmentation {name!r}: {numbers[0]:g} is not a whole number")
    return numbers


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


def _flip(x: torch.Tensor, y: torch.Tensor, chance: Chance) -> Batch:
    turned = chance.uniform(x.shape[1], 1, 1, 1) < 0.5
    return torch.where(turned, x.flip(-1), x), y


def _crop(pad: int) -> Change:
    def change(x: torch.Tensor, y: torch.Tensor, chance: Chance) -> Batch:
        height, width = x.shape[-2:]
        wide = F.pad(x.flatten(0, 1), (pad, pad, pad, pad))
        moves = chance.whole(2 * pad + 1, 2, x.shape[1]).transpose(0, 1).flatten(1)
        rows = moves[0, :, None] + torch.arange(height, device=x.device)
        columns = moves[1, :, None] + torch.arange(width, device=x.device)
        each = torch.arange(len(wide), device=x.device)[:, None, None]
        tensor = wide.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        return tensor.view(*x.shape[:2], *tensor.shape[1:]), y

    return change


def _resized(least: float) -> Change:
    """A part of at least this area, of sides up to 4:3, scaled back to the whole."""

    def change(x: torch.Tensor, y: torch.Tensor, chance: Chance) -> Batch:
        drawn = chance.uniform(4, x.shape[1]).transpose(0, 1).flatten(1)
        area = least + (1 - least) * drawn[0]
        form = LONGEST ** (2 * drawn[1] - 1)
        sides = torch.stack([(area * form).sqrt(), (area / form).sqrt()], 1).clamp(max=1.0)
        place = (1 - sides) * (2 * drawn[2:].T - 1)
        moved = torch.cat([torch.diag_embed(sides), place[:, :, None]], 2)
        every = x.flatten(0, 1)
        grid = F.affine_grid(moved.to(x.dtype), list(every.shape), align_corners=False)
        tensor = F.grid_sample(every, grid, padding_mode="reflection", align_corners=False)
        return tensor.view(*x.shape[:2], *tensor.shape[1:]), y

    return change


def _soft(y: torch.Tensor, n_classes: int) -> torch.Tensor:
    return y if y.is_floating_point() else F.one_hot(y, n_classes).float()


def _others(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Examples of each member in this order."""
    first = torch.arange(len(x), device=x.device)[:, None] * x.shape[1]
    return x.flatten(0, 1)[(other + first).flatten()].view(x.shape)


def _wide(numbers: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A number per member, to go with its batch."""
    return numbers.to(like.dtype).view(-1, *[1] * (like.ndim - 1))


def _mixup(alpha: float, n_classes: int) -> Change:
    def change(x: torch.Tensor, y: torch.Tensor, chance: Chance) -> Batch:
        tensor, share, soft = chance.permutation(x.shape[1]), chance.beta(alpha), _soft(y, n_classes)
        mixed_x = torch.lerp(_others(x, tensor), x, _wide(share, x))
        return mixed_x, torch.lerp(_others(soft, tensor), soft, _wide(share, soft))

    return change


def _cutmix(alpha: float, n_classes: int) -> Change:
    def change(x: torch.Tensor, y: torch.Tensor, chance: Chance) -> Batch:
        tensor = chance.permutation(x.shape[1])
        height, width = x.shape[-2:]
        cut = (1 - chance.beta(alpha)).sqrt()
        middle = chance.uniform(2)
        inside = _band(height, middle[:, 0], cut)[:, :, None] & _band(width, middle[:, 1], cut)[:, None, :]
        soft, part = _soft(y, n_classes), inside.float().mean((1, 2))
        seen = torch.where(inside[:, None, None], _others(x, tensor), x)
        return seen, torch.lerp(soft, _others(soft, tensor), _wide(part, soft))

    return change


def _band(length: int, middle: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    """`[member, length]`: what lies in a part of it around the middle."""
    place = (torch.arange(length, device=middle.device) + 0.5) / length
    return (place - middle[:, None]).abs() < part[:, None] / 2
