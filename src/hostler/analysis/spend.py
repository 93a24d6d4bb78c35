"""Fleets' caps and costs, as far as the store has them.

Entries it does not understand are left out: a page that shows money must not fail for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from hostler import settings
from hostler.errors import HostlerError
from hostler.records.body import Record, decode
from hostler.records.launch import launches, settlement
from hostler.records.launch.launches import Generation
from hostler.records.run import heartbeats
from hostler.store import Store

LEDGER = "ledger/"
KINDS = {"reserve": "reserved", "return": "returned", "spent": "spent"}


def spend(store: Store) -> list[dict[str, Any]]:
    """Per sweep and fleet: what its launches have spent so far; of a sweep with a budget also what is
    reserved, returned, and committed by all three."""
    held, paid = _ledger(store), _launches(store)
    none = dict.fromkeys((*KINDS.values(), "committed"), 0.0)
    return [
        {"sweep": sweep, "fleet": fleet, **held.get((sweep, fleet), none), **_spent(paid.get((sweep, fleet)))}
        for sweep, fleet in dict.fromkeys([*held, *paid])
    ]


def _ledger(store: Store) -> dict[tuple[str, str], dict[str, float]]:
    sums: dict[tuple[str, str], dict[str, float]] = {}
    fleets: dict[tuple[str, int], str] = {}  # whose a reservation is: what is returned names only its number
    for entry in store.list(LEDGER):
        sweep, number = entry.key.removeprefix(LEDGER).removesuffix(".json").split("/")[:2]
        record = _read(store, entry.key)
        kind = KINDS.get(str(record.get("kind")))
        if kind is None:
            continue
        fleet = str(record.get("fleet") or fleets.get((sweep, int(record.get("of") or 0)), ""))
        fleets[sweep, int(number)] = fleet
        line = sums.setdefault((sweep, fleet), dict.fromkeys(KINDS.values(), 0.0))
        line[kind] += _amount(record)
    return {key: {**line, "committed": _kept(line)} for key, line in sums.items()}


def _launches(store: Store) -> dict[tuple[str, str], float]:
    """Costs of the workers of every launch with a price, split by sweep."""
    timing, sums = settings.timing(), dict[tuple[str, str], float]()
    known = list(_priced(store))
    now = heartbeats.readers_time(store) if known else 0.0
    for generation in known:
        try:
            found = settlement.look(store, generation, now, timing)
        except (HostlerError, KeyError, TypeError, ValueError):
            continue
        for sweep in {**dict.fromkeys(generation.sweeps), **generation.reserved}:
            sums[sweep, generation.fleet] = sums.get((sweep, generation.fleet), 0.0) + found.of(sweep)
    return sums


def _priced(store: Store) -> Iterator[Generation]:
    try:
        yield from (generation for generation in launches.everywhere(store) if generation.price is not None)
    except HostlerError:
        return


def _spent(cost: float | None) -> dict[str, float]:
    return {} if cost is None else {"spent": round(cost, 6)}


def _read(store: Store, key: str) -> Record:
    try:
        return decode(store.get(key).data, key)
    except HostlerError:
        return {}


def _amount(record: Record) -> float:
    cost = record.get("cost")
    return float(cost) if isinstance(cost, (int, float)) and math.isfinite(cost) else 0.0


def _kept(line: dict[str, float]) -> float:
    return round(line["reserved"] - line["returned"] + line["spent"], 6)
