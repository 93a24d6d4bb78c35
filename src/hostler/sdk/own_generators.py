"""Random generators that a loader, its sampler, its data set or what these hold keep for themselves.

A data set with a generator of its own draws from it in the main process where there are no workers; a sampler
does so in any case.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hostler.sdk.checkpoint import rng

DEPTH = 4  # how deep they are looked for
ITEMS = 100  # of a list
OBJECTS = 2000


def own_generators(loader: Any) -> dict[str, Any]:
    """Generators that the loader, its sampler, its data set or what these hold keep for themselves."""
    found: dict[str, Any] = {}
    names = ("generator", "sampler", "batch_sampler", "dataset", "collate_fn")
    pending = [(name, getattr(loader, name, None), 0) for name in names]
    seen: set[int] = set()
    while pending and len(seen) < OBJECTS:
        path, value, depth = pending.pop(0)
        if value is None or id(value) in seen:
            continue
        seen.add(id(value))
        if rng.is_generator(value):
            found[path] = value
        elif depth < DEPTH:
            pending += [(f"{path}.{key}", item, depth + 1) for key, item in _held(value)]
    return found


def _held(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        return [(str(n), item) for n, item in enumerate(value[:ITEMS]) if hasattr(item, "__dict__")]
    held = getattr(value, "__dict__", None)
    return list(held.items()) if isinstance(held, dict) and not isinstance(value, (type, ModuleType)) else []
