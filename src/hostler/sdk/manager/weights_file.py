"""Weights as one file that the tools of their library read: torch's own, or an archive of arrays, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler.sdk.checkpoint import torch_state


def write(folder: Path, stem: str, weights: Mapping[str, Any]) -> Path:
    """Whole or not at all; the path it got, whose ending says what it is."""
    folder.mkdir(parents=True, exist_ok=True)
    torch, numpy = torch_state.module(), sys.modules.get("numpy")
    values = list(weights.values())
    if torch is not None and any(isinstance(value, torch.Tensor) for value in values):
        path, save = folder / f"{stem}.pt", torch.save
    elif numpy is not None and values and all(isinstance(value, numpy.ndarray) for value in values):
        path, save = folder / f"{stem}.npz", _arrays
    else:
        path, save = folder / f"{stem}.json", _json
    beside = path.with_name(f".{path.name}")
    with open(beside, "wb") as file:
        save(dict(weights), file)
    beside.replace(path)
    return path


def _arrays(weights: Mapping[str, Any], file: Any) -> None:
    numpy: Any = sys.modules["numpy"]
    numpy.savez(file, **weights)


def _json(weights: Mapping[str, Any], file: Any) -> None:
    file.write(json.dumps(dict(weights), default=_plain).encode())


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
