"""The shared random states as lists, numbers and tensors: what a library loads without unpickling code."""

from __future__ import annotations

from typing import Any

from hostler.sdk.checkpoint import rng


def taken() -> dict[str, Any]:
    found = dict(rng.snapshot())
    version, numbers, gauss = found["python"]
    found["python"] = [version, list(numbers), gauss]
    if "numpy" in found:
        name, keys, *rest = found["numpy"]
        found["numpy"] = [str(name), [int(key) for key in keys], *map(_plain, rest)]
    return found


def put_back(state: dict[str, Any]) -> None:
    version, numbers, gauss = state["python"]
    found = {**state, "python": (version, tuple(numbers), gauss)}
    if "numpy" in state:
        import numpy

        name, keys, *rest = state["numpy"]
        found["numpy"] = (name, numpy.array(keys, dtype=numpy.uint32), *rest)
    rng.put_back(found)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
