"""What fleets may spend and have spent, as far as the store says: where readers ask for money."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from hostler.errors import HostlerError
from hostler.records.body import Record, decode
from hostler.store import Store

LEDGER = "ledger/"
AMOUNTS = ("amount", "cost", "money")


def spend(store: Store) -> list[dict[str, Any]]:
    """Per sweep and fleet: money reserved, returned and spent. Empty where nothing has a price."""
    sums: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for entry in store.list(LEDGER):
        try:
            record = decode(store.get(entry.key).data, entry.key)
        except HostlerError:  # written by a newer version, or right now
            continue
        sweep = entry.key.removeprefix(LEDGER).partition("/")[0]
        sums[sweep, str(record.get("fleet", ""))][str(record.get("kind", ""))] += _amount(record)
    return [{"sweep": sweep, "fleet": fleet, **kinds} for (sweep, fleet), kinds in sums.items()]


def _amount(record: Record) -> float:
    found = next((record[name] for name in AMOUNTS if isinstance(record.get(name), (int, float))), 0.0)
    return float(found) if math.isfinite(found) else 0.0
