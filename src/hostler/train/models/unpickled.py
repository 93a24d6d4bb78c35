"""Tensors of a pickled checkpoint, written as safetensors. Nothing that the pickle asks to run is run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from hostler.errors import UsageError
from hostler.frozen import dataclass

KEEP = "--pickles keep pushes it as it is"


@dataclass(frozen=True)
class Converted:
    """The file that has come in a pickle's place, and names of what it could not hold."""

    path: Path
    left_out: tuple[str, ...]


def convert(path: Path, name: str) -> Converted:
    """Replace the pickle by its tensors, named by their place in it: `model.head.weight`. `name` is for
    messages."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, about pickles of other programs
            found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of pickle, of zip files, of torch itself
        raise UsageError(f"{name} is not converted: {_why(error)}", KEEP) from None
    rows = list(_parts(found, ""))
    tensors = {key: value.contiguous().clone() for key, value in rows if isinstance(value, torch.Tensor)}
    if not tensors:
        raise UsageError(f"{name} is not converted: it holds no tensor", KEEP)
    target = path.with_suffix(".safetensors")
    if target.exists():
        raise UsageError(f"{name} is not converted: there is a {target.name} beside it", KEEP)
    save_file(tensors, target)
    path.unlink()
    return Converted(target, tuple(key for key, value in rows if not isinstance(value, torch.Tensor)))


def _parts(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Whatever is in tables and lists, with its place; an empty one is nothing."""
    if isinstance(value, (Mapping, list, tuple)):
        for key, part in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _parts(part, f"{place}.{key}" if place else str(key))
    else:
        yield place or "weight", value


def _why(error: Exception) -> str:
    """The first thing that is not plain, if torch names it; else its complaint, without advice."""
    text = " ".join(str(error).split())
    if found := re.search(r"(?:GLOBAL|class|global:?|function) ([A-Za-z_]\w*(?:\.\w+)+)", text):
        return f"it holds more than plain tensors (a {found[1]})"
    own = re.search(r"WeightsUnpickler error: (.+?)(?: Check the documentation|$)", text)
    return f"torch cannot read it ({type(error).__name__}: {(own[1] if own else text)[:120]})"
