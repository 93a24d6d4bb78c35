"""`synthetic/SHAPE_CLASSES_COUNT`, for example `synthetic/3x32x32_10_1000`: made on the spot, learnable,
the same everywhere.

Each class has a direction of its own; an example is that direction and noise. `synthetic/text16_50_1000`:
1000 texts of 16 tokens out of 50, that count in steps of their own; the targets are the next tokens.
"""

from __future__ import annotations

import re

import torch

from hostler.errors import SpecError
from hostler.train.config import Config
from hostler.train.data.npz import of
from hostler.train.data.order import mixed
from hostler.train.data.sources import wanted
from hostler.train.data.split import TEXT, Arrays, Data

_NAME = re.compile(r"(?P<shape>\d+(x\d+)*)_(?P<classes>\d+)_(?P<count>\d+)(?P<bytes>_uint8)?")
_TEXT = re.compile(r"text(?P<length>\d+)_(?P<tokens>\d+)_(?P<count>\d+)")
_SEED = 17
_STRIDES = 4
_NOISE = 1.0


def load(config: Config, name: str) -> Data:
    text = _TEXT.fullmatch(name)
    if text is not None:
        if not int(text["tokens"]) or not int(text["length"]):
            raise SpecError(f"synthetic/{name} has no tokens", hint="for example synthetic/text16_50_1000")
        return _texts(config, int(text["length"]), int(text["tokens"]), int(text["count"]))
    match = _NAME.fullmatch(name)
    if match is None:
        raise SpecError(
            f"synthetic/{name} is not SHAPE_CLASSES_COUNT",
            hint="for example synthetic/3x32x32_10_1000, or synthetic/text16_50_1000",
        )
    if not int(match["classes"]):
        raise SpecError(f"synthetic/{name} has no classes", hint="for example synthetic/3x32x32_10_1000")
    shape = tuple(int(part) for part in match["shape"].split("x"))
    made = {
        ours: _made(shape, int(match["classes"]), int(match["count"]), place, bytes_=bool(match["bytes"]))
        for place, ours in enumerate(wanted(config))
    }
    return of(made)


def _made(shape: tuple[int, ...], classes: int, count: int, place: int, *, bytes_: bool) -> Arrays:
    directions = torch.randn(classes, *shape, generator=torch.Generator().manual_seed(_SEED))
    chance = torch.Generator().manual_seed(mixed(_SEED, place))
    y = torch.arange(count) % classes
    x = directions[y] + _NOISE * torch.randn(count, *shape, generator=chance)
    return Arrays((x * 32 + 128).clamp(0, 255).byte() if bytes_ else x, y)


def _texts(config: Config, length: int, tokens: int, count: int) -> Data:
    made = {}
    for place, ours in enumerate(wanted(config)):
        chance = torch.Generator().manual_seed(mixed(_SEED, place))
        begin = torch.randint(tokens, (count, 1), generator=chance)
        stride = torch.randint(1, _STRIDES + 1, (count, 1), generator=chance)
        rows = (begin + stride * torch.arange(length + 1)) % tokens
        made[ours] = Arrays(rows[:, :-1].clone(), rows[:, 1:].clone())
    return Data(made, (length,), tokens, TEXT, vocabulary=tokens)
