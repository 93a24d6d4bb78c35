"""Text, arrays and pictures that are logged: files in the output folder, named by metric and step."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = "logged"


def keep(value: Any, folder: Path, name: str, step: int) -> Path | None:
    """Write the value to `folder`/logged/<name>/<step>.<kind>; None if it is nothing of the sort."""
    kind = _kind(value)
    if kind is None:
        return None
    place = folder / FOLDER / "/".join(filter(None, (_safe(part) for part in name.split("/"))))
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{step:08d}.{kind}"
    _WRITERS[kind](value, path)
    return path


def _kind(value: Any) -> str | None:
    if isinstance(value, str):
        return "txt"
    if callable(getattr(value, "savefig", None)):
        return "figure.png"
    if callable(getattr(value, "save", None)) and hasattr(value, "mode") and hasattr(value, "size"):
        return "png"
    if getattr(value, "ndim", 0) and ("numpy" in sys.modules or hasattr(value, "numpy")):
        return "npy"
    if isinstance(value, (list, tuple)) and value:
        return "json"
    return None


def _array(value: Any, path: Path) -> None:
    import numpy

    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    numpy.save(path, numpy.asarray(value), allow_pickle=False)


def _safe(part: str) -> str:
    return re.sub(r"[^\w.=+-]+", "_", part).lstrip(".")


_WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    "txt": lambda value, path: path.write_text(value, encoding="utf-8", errors="surrogatepass"),
    "figure.png": lambda value, path: value.savefig(path, format="png"),
    "png": lambda value, path: value.save(path, format="PNG"),
    "npy": _array,
    "json": lambda value, path: path.write_text(json.dumps(value)),
}
