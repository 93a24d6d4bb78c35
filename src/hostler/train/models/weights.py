"""Weights from a file into a model; those of another architecture are refused, naming what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from hostler.errors import DamagedError, MissingError, SpecError

_SHOWN = 5


def load(model: torch.nn.Module, path: str) -> None:
    """A safetensors file, a torch file (weights only), or a folder with one of them. A head of another
    width is left as it is: a new task has other classes."""
    found = _read(_file(Path(path)))
    found = {name.removeprefix("module."): value for name, value in found.items()}
    mine = model.state_dict()
    head = _head_names(model)
    other = [n for n in mine if n in found and found[n].shape != mine[n].shape]
    left = [n for n in other if n in head]
    problems = [f"{n} is {_shape(mine[n])} here and {_shape(found[n])} there" for n in other if n not in head]
    problems += [f"{n} is not there" for n in mine if n not in found and n not in head]
    problems += [f"{n} is not here" for n in found if n not in mine]
    if problems:
        more = f", and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise SpecError(f"{path} holds weights of another model: {'; '.join(problems[:_SHOWN])}{more}")
    model.load_state_dict({n: v for n, v in found.items() if n not in left}, strict=False)


def _head_names(model: torch.nn.Module) -> set[str]:
    layers = [(name, one) for name, one in model.named_modules() if isinstance(one, torch.nn.Linear)]
    return {f"{layers[-1][0]}.weight", f"{layers[-1][0]}.bias"} if layers else set()


def _file(path: Path) -> Path:
    if path.is_dir():
        for pattern in ("model.safetensors", "*.safetensors", "*.pt", "*.pth", "*.bin"):
            found = sorted(path.glob(pattern))
            if found:
                return found[0]
    if not path.is_file():
        raise MissingError(
            f"there are no weights at {path}", hint="model_pretrained: a file, a folder, true or false"
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
    return {name: value for name, value in found.items() if isinstance(value, torch.Tensor)}


def _shape(value: torch.Tensor) -> str:
    return "×".join(map(str, value.shape)) or "a number"
