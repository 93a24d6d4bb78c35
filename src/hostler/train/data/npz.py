"""`npz/PATH`: arrays `x_<split>` and `y_<split>` (or `<split>_x`, `<split>_y`) of one file. Nothing is
unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np
import torch

from hostler.errors import DamagedError, MissingError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train.config import Config
from hostler.train.data.sources import wanted
from hostler.train.data.split import IMAGES, VECTORS, Arrays, Data

PIXELS = (-1.0, 1.0)  # of `scaled`
SAVED = "np.savez(PATH, x_train=…, y_train=…, …)"


def load(config: Config, name: str) -> Data:
    path = next((p for p in (Path(config.data_dir, name), Path(name)) if p.is_file()), None)
    if path is None:
        place = Path(config.data_dir, name)
        near = [one.name for one in place.parent.glob("*.npz")]
        hint = did_you_mean(place.name, near, "npz/PATH, in data_dir")
        raise MissingError(f"{place} does not exist", hint=hint)
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise DamagedError(f"{path} is one array", hint=f"{SAVED} writes several")
        with file:
            splits = {ours: _split(file, theirs, path) for ours, theirs in wanted(config).items()}
    except (ValueError, OSError, EOFError, SyntaxError, TokenError, BadZipFile) as error:
        if isinstance(error, OSError) or is_zipfile(path):
            raise DamagedError(f"{path}: {error}") from None
        raise DamagedError(
            f"{path} is not an npz file, or an incomplete one", hint=f"{SAVED} writes one"
        ) from None
    return of(splits)


def of(splits: Mapping[str, Arrays]) -> Data:
    """Data of arrays: whole-number targets are classes, four axes are pictures."""
    first = next(iter(splits.values()))
    for name, arrays in splits.items():
        if not len(arrays):
            raise SpecError(f"split {name!r} has no examples")
        if len(arrays.x) != len(arrays.y):
            raise SpecError(f"split {name!r} has {len(arrays.x)} inputs and {len(arrays.y)} targets")
    shapes = {name: tuple(one.x.shape[1:]) for name, one in splits.items()}
    if len(set(shapes.values())) > 1:
        raise SpecError(f"splits of different shapes: {shapes}")
    whole = all(not one.y.is_floating_point() for one in splits.values())
    classes = max(int(one.y.max()) for one in splits.values()) + 1 if whole else 0
    images = first.x.ndim == 4
    prepare = scaled if first.x.dtype == torch.uint8 else None
    kind, pixels = IMAGES if images else VECTORS, PIXELS if images and prepare else None
    return Data(splits, tuple(first.x.shape[1:]), classes, kind, prepare, pixels=pixels)


def scaled(x: torch.Tensor) -> torch.Tensor:
    """Bytes to [-1, 1], on the device."""
    return x.float() / 127.5 - 1


def _split(file: Any, split: str, path: Path) -> Arrays:
    for x, y in ((f"x_{split}", f"y_{split}"), (f"{split}_x", f"{split}_y")):
        if x in file and y in file:
            return Arrays(_tensor(file[x]), _tensor(file[y], target=True))
    raise SpecError(f"{path} has no x_{split} and y_{split}", hint=f"it has {', '.join(file.files)}")


def _tensor(array: Any, *, target: bool = False) -> torch.Tensor:
    if target and array.dtype.kind in "iub":
        return torch.from_numpy(array.astype(np.int64))
    if array.dtype == np.uint8:
        return torch.from_numpy(array)
    return torch.from_numpy(array.astype(np.float32))
