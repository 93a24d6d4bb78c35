"""Records a script's logged values: numbers at once in the point file, others after sorting.

Nothing in here raises or waits: what cannot be kept is dropped, and said once per name. Text, arrays and
pictures are files in the output folder, named by metric and step.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hostler.sdk.point_file import NoRoom, PointFile

FOLDER = "logged"  # in the output folder
STEPS = 1 << 63


class Recorder:
    def __init__(self, file: PointFile | None, output: Path, say: Callable[[str], None]) -> None:
        self._file, self._output, self._say = file, output, say
        self._said: set[str] = set()

    @property
    def points(self) -> int:
        return self._file.points if self._file else 0

    @property
    def add(self) -> Callable[[Any, Mapping[Any, Any]], None]:
        """Takes one point that is all numbers, and raises for any other: that is for `sort_out`. Meant to be
        kept by whoever logs often."""
        return self._file.add if self._file else _nowhere

    def close(self) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._warn("close", f"the metrics file could not be closed: {error}")

    def disown(self) -> None:
        """In a forked child: what it logs is dropped."""
        if self._file is not None:
            self._file.disown()
        self._file = None

    def sort_out(self, step: Any, values: Mapping[Any, Any]) -> None:
        """Record a point with values of any type. Never raises."""
        try:
            number = step_of(step)
            if number is None:
                self._warn("step", f"step={step!r} is not a whole number: its values are dropped")
                return
            numbers = {
                name: float(value)
                for name, value in _flat(values).items()
                if self._is_number(name, value, number)
            }
            if numbers and self._file is not None:
                self._file.add(number, numbers)
        except NoRoom as error:
            self._warn("room", f"metrics are dropped, as the disk is full: {error.strerror}")
        except Exception as error:  # telemetry must not end a training
            self._warn("log", f"logged values were dropped: {type(error).__name__}: {error}")

    def _is_number(self, name: str, value: Any, step: int) -> bool:
        """Whether it is one; what is not is kept as a file, or dropped, and said."""
        if not isinstance(value, str) and not getattr(value, "ndim", 0) and _float(value) is not None:
            return True
        kept = _kept_as_file(value, self._output, name, step)
        if kept is None and _float(value) is not None:
            return True
        what = "text" if isinstance(value, str) else f"of type {type(value).__name__}"
        then = f"kept as a file in {kept.parent}" if kept else "dropped"
        self._warn(name, f"metric {name!r} is not a number but {what}: {then}")
        return False

    def _warn(self, about: str, line: str) -> None:
        if about not in self._said:
            self._said.add(about)
            self._say(line)


def _nowhere(step: Any, values: Mapping[Any, Any]) -> None:
    """Drop the values: the file could not be made, which was printed then."""


def _flat(values: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    """{'val': {'acc': 1}} to {'val/acc': 1}."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}/"))
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def step_of(step: Any) -> int | None:
    """The step as a whole number, if it is one that can be kept."""
    number = _float(step)
    if number is None or not math.isfinite(number) or number != int(number):
        return None
    exact = int(step)
    return exact if -STEPS <= exact < STEPS else None


def value_of(values: Mapping[Any, Any], name: str) -> float | None:
    """The number of this name, also of a nested one with slashes in it; None if there is none."""
    if name in values:
        return _float(values[name])
    nested = any(isinstance(value, Mapping) for value in values.values())
    return _float(_flat(values).get(name)) if nested else None


def _float(value: Any) -> float | None:
    if isinstance(value, (str, bytes)):
        return None
    try:
        return float(value)
    except Exception:  # any object may be logged, and its own code asked
        return None


def _kept_as_file(value: Any, folder: Path, name: str, step: int) -> Path | None:
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
