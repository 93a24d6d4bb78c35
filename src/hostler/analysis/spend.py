"""What fleets may spend and have spent, as far as the store says: where readers ask for money.

Entries it does not understand are left out: a page that shows money must not fail for it.
"""

from __future__ import annotations

import math
from typing import Any

from hostler.errors import HostlerError
from hostler.records.body import Record, decode
from hostler.store import Store

LEDGER = "ledger/"
KINDS = {"reserve": "reserved", "return": "returned", "spent": "spent"}


def spend(store: Store) -> list[dict[str, Any]]:
    """Per sweep and fleet: money reserved, returned and spent, and what is committed by all three."""
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
    return [
        {"sweep": sweep, "fleet": fleet, **line, "committed": _kept(line)}
        for (sweep, fleet), line in sums.items()
    ]


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
