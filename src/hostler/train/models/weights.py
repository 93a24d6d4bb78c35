"""Weights from a file into a model; those of another architecture are refused, naming what differs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from hostler.errors import DamagedError, MissingError, SpecError
from hostler.train.models.head import names

_SHOWN = 5


def load(model: torch.nn.Module, path: str, *, whole: bool = False) -> None:
    """A safetensors file, a torch file (weights only), or a folder with one of them. A head of another
    width is left as it is, unless the whole must fit: a new task has other classes."""
    tensors = read(path)
    mine = model.state_dict()
    tensors = _renamed(tensors, mine)
    head = set() if whole else names(model)
    tied = _tied(mine)
    other = [n for n in mine if n in tensors and tensors[n].shape != mine[n].shape]
    remaining = [n for n in other if n in head]
    problems = [
        f"{n} is {_shape(mine[n])} here and {_shape(tensors[n])} there" for n in other if n not in head
    ]
    problems += [f"{n} is not there" for n in mine if not tied[n] & tensors.keys() and n not in head]
    problems += [f"{n} is not here" for n in tensors if n not in mine]
    if problems:
        more = f", and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise SpecError(f"{path} holds weights of another model: {'; '.join(problems[:_SHOWN])}{more}")
    model.load_state_dict({n: v for n, v in tensors.items() if n not in remaining}, strict=False)


def read(path: str) -> dict[str, torch.Tensor]:
    return _read(_file(Path(path)))


def _renamed(found: dict[str, torch.Tensor], mine: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Names as they are here: wrappers of other trainers, and our own, put a word in front."""
    if not found.keys() & mine.keys():
        for word in ("module.", "_orig_mod.", "body."):
            found = {name.removeprefix(word): value for name, value in found.items()}
        if not found.keys() & mine.keys() and all(name.startswith("body.") for name in mine):
            found = {f"body.{name}": value for name, value in found.items()}
    return found


def _tied(mine: Mapping[str, torch.Tensor]) -> dict[str, set[str]]:
    """Name → the names of the same weights: files may hold them once."""
    same: dict[tuple[int, torch.Size], set[str]] = {}
    for name, value in mine.items():
        same.setdefault((value.data_ptr(), value.shape), set()).add(name)
    return {name: same[(value.data_ptr(), value.shape)] for name, value in mine.items()}


def _file(path: Path) -> Path:
    if path.is_dir():
        for pattern in ("model.safetensors", "*.safetensors", "*.pt", "*.pth", "*.bin"):
            paths = sorted(path.glob(pattern))
            if paths:
                return paths[0]
    if not path.is_file():
        raise MissingError(
            f"no weights were found at {path}", hint="model_pretrained: a file, a folder, true or false"
        )
    return path


def _read(path: Path) -> dict[str, torch.Tensor]:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # each format has its own
        raise DamagedError(f"{path} cannot be read as weights: {str(error).splitlines()[0]}") from None
    for key in ("state_dict", "model"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
    if not isinstance(found, dict):
        raise DamagedError(f"{path} holds {type(found).__name__}, not weights by their names")
    return {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}


def _shape(value: torch.Tensor) -> str:
    return "×".join(map(str, value.shape)) or "a number"
