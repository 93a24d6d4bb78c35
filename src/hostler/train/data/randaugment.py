"""RandAugment of a batch on the device: every picture goes through `count` changes of its own, drawn from
fourteen, of one strength (0 to 30).

Which picture gets which change is drawn on the CPU, so that the device is never waited for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from hostler.train.data.chance import Chance

COUNT, STRENGTH, MOST = 2, 9.0, 30.0
SLANT, MOVE, TURN, LIGHT = 0.3, 0.45, 30.0, 0.9  # at the greatest strength; turns in degrees
_GRAY = (0.299, 0.587, 0.114)

# pictures in [0, 1], and a strength in [-1, 1] for each
Operation = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Change = Callable[[torch.Tensor, torch.Tensor, Chance], tuple[torch.Tensor, torch.Tensor]]


def change(numbers: Sequence[float], pixels: tuple[float, float] | None) -> Change:
    """`numbers`: count and strength, where given; `pixels`: none means each picture's own extremes."""
    count = int(numbers[0]) if numbers else COUNT
    part = min(numbers[1] if len(numbers) > 1 else STRENGTH, MOST) / MOST

    def changed(x: torch.Tensor, y: torch.Tensor, chance: Chance) -> tuple[torch.Tensor, torch.Tensor]:
        every = x.flatten(0, 1)
        low, span = _range(every, pixels)
        unit = ((every - low) / span).clamp(0, 1)
        draws = chance.on_host
        for _ in range(count):
            unit = _round(unit, part, draws, x.shape[1])
        return (unit * span + low).view(x.shape), y

    return changed


def _range(
    x: torch.Tensor, pixels: tuple[float, float] | None
) -> tuple[torch.Tensor | float, torch.Tensor | float]:
    if pixels is not None:
        return pixels[0], pixels[1] - pixels[0]
    low = x.amin((1, 2, 3), keepdim=True)
    return low, (x.amax((1, 2, 3), keepdim=True) - low).clamp_min(1e-6)


def _round(x: torch.Tensor, part: float, draws: Chance, batch: int) -> torch.Tensor:
    """`batch`: pictures of each member."""
    chosen = draws.whole(len(OPERATIONS), batch).flatten()
    signs = draws.whole(2, batch).flatten() * 2 - 1
    order = chosen.argsort(stable=True)
    there, turned = _sent(torch.stack([order, signs[order]]), x.device)
    out, first = x.clone(), 0
    for operation, count in zip(OPERATIONS, torch.bincount(chosen, minlength=len(OPERATIONS)), strict=True):
        which = slice(first, first + int(count))
        first = which.stop
        if which.start < which.stop:
            strength = (turned[which] * part).to(x.dtype)
            out[there[which]] = operation(x[there[which]], strength).clamp(0, 1)
    return out


def _sent(drawn: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Drawn numbers on the device, which nobody waits for."""
    return drawn.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else drawn


def _same(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return x


def _autocontrast(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    return torch.where(high > low, (x - low) / (high - low).clamp_min(1e-6), x)


def _equalize(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    """Each value becomes the part of its channel's values that are not above it."""
    flat = (x.flatten(2) * 255).round()
    ranks = torch.searchsorted(flat.sort(-1).values.contiguous(), flat.contiguous(), right=True)
    return (ranks / flat.shape[-1]).to(x.dtype).reshape(x.shape)


def _solarize(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return torch.where(x >= _wide(1 - strength.abs()), 1 - x, x)


def _posterize(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    levels = 2 ** (8 - (4 * strength.abs()).round())
    return torch.floor(x * 255 / 256 * _wide(levels)) / _wide(levels)


def _color(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return _blend(_gray(x).expand_as(x), x, strength)


def _contrast(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return _blend(_gray(x).mean((2, 3), keepdim=True).expand_as(x), x, strength)


def _brightness(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return _blend(torch.zeros_like(x), x, strength)


def _sharpness(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    kernel = x.new_ones(3, 3)
    kernel[1, 1].fill_(5)
    kernel /= 13
    smooth = F.conv2d(F.pad(x.flatten(0, 1)[:, None], (1, 1, 1, 1), "replicate"), kernel[None, None])
    return _blend(smooth.reshape(x.shape), x, strength)


def _blend(plain: torch.Tensor, x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    """Away from the plain picture or towards it."""
    return plain + (x - plain) * (1 + LIGHT * _wide(strength))


def _gray(x: torch.Tensor) -> torch.Tensor:
    if x.shape[1] != len(_GRAY):
        return x.mean(1, keepdim=True)
    return sum(x[:, place : place + 1] * part for place, part in enumerate(_GRAY))  # type: ignore[return-value]


def _rotate(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    angle = strength * math.radians(TURN)
    cos, sin = angle.cos(), angle.sin()
    ratio = x.shape[-2] / x.shape[-1]
    return _moved(x, a=cos, b=-sin * ratio, c=sin / ratio, d=cos)


def _shear_x(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return _moved(x, b=strength * SLANT)


def _shear_y(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return _moved(x, c=strength * SLANT)


def _translate_x(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return _moved(x, e=2 * MOVE * strength)


def _translate_y(x: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return _moved(x, f=2 * MOVE * strength)


def _moved(x: torch.Tensor, **given: torch.Tensor) -> torch.Tensor:
    """By the map [[a, b, e], [c, d, f]] of places; what comes from outside is half bright."""
    tensor, none = torch.ones(len(x), device=x.device, dtype=x.dtype), x.new_zeros(len(x))
    usual = {"a": tensor, "b": none, "e": none, "c": none, "d": tensor, "f": none}
    rows = [given.get(name, value) for name, value in usual.items()]
    grid = F.affine_grid(torch.stack(rows, 1).reshape(-1, 2, 3), list(x.shape), align_corners=False)
    return F.grid_sample(x - 0.5, grid, align_corners=False) + 0.5


def _wide(values: torch.Tensor) -> torch.Tensor:
    return values[:, None, None, None]


OPERATIONS: tuple[Operation, ...] = (
    _same, _autocontrast, _equalize, _rotate, _solarize, _color, _posterize, _contrast, _brightness,
    _sharpness, _shear_x, _shear_y, _translate_x, _translate_y,
)  # fmt: skip
