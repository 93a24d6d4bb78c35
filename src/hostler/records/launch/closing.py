"""Sweeps that a launch of a fleet serves, and the record that closes it.

A submitter writes runs, has the launch serve their sweep, and then looks for `closed.json`; a worker that
finds nothing writes `closed.json` and then looks again. So one of the two always sees the other: a closed
launch gets no new sweep, and one that got a sweep in time is worked off before it is taken down.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostler.records import layout
from hostler.records.body import decode, encode
from hostler.spec.names import is_part
from hostler.store import Store


def serve(store: Store, fleet: str, number: int, sweeps: Iterable[str]) -> bool:
    """Have a launch take runs of these sweeps; False if it is closed, and another must be started."""
    known = served(store, fleet, number)
    for name in sweeps:
        if name not in known:
            store.put(layout.served_sweep(fleet, number, name), encode({}), if_absent=True)
    return not is_closed(store, fleet, number)


def served(store: Store, fleet: str, number: int) -> list[str]:
    return list(joined(store, fleet, number))


def joined(store: Store, fleet: str, number: int) -> dict[str, float]:
    """sweep → since when a launch serves it, by the store's clock."""
    prefix = layout.served(fleet, number)
    entries = store.list(prefix)
    names = ((entry.key.removeprefix(prefix).removesuffix(".json"), entry.modified) for entry in entries)
    return {name: modified for name, modified in names if is_part(name)}


def close(store: Store, fleet: str, number: int) -> None:
    """No sweep is added any more. Idempotent, by any worker."""
    store.put(layout.closed(fleet, number), encode({}), if_absent=True)


def is_closed(store: Store, fleet: str, number: int) -> bool:
    return any(True for _ in store.list(layout.closed(fleet, number)))


def has_shape(store: Store, fleet: str, number: int, shape: str) -> bool:
    """Whether a launch has machines of this shape; one that has none yet gets it."""
    key = layout.machines(fleet, number)
    if store.put(key, encode({"shape": shape}), if_absent=True):
        return True
    return bool(decode(store.get(key).data, key).get("shape") == shape)
