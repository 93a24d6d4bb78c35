"""Values that can be written down and read back exactly."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from hostler.spec.space.fault import Fault, Path


def plain(value: Any, path: Path) -> Any:
    """The value in plain Python (tables, lists, numbers, text); an error if it cannot be kept."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one, (*path, str(key))) for key, one in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(one, (*path, n)) for n, one in enumerate(value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    for name in ("item", "tolist"):  # of the numbers and rows of other libraries
        if callable(getattr(value, name, None)) and (name == "tolist" or not getattr(value, "shape", ())):
            return plain(getattr(value, name)(), path)
    raise Fault(
        path, f"a value of type {type(value).__name__} cannot be kept", hint="numbers, text and lists can"
    )


def distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """Each value once, in order; 1, 1.0, true and '1' are four."""
    return tuple({written(value): value for value in reversed(list(values))}.values())[::-1]


def written(value: Any) -> str:
    """A text that is the same for equal values only."""
    return json.dumps(value, sort_keys=True, default=repr)
