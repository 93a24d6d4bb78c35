"""Whether anybody works on what is open: workers whose heartbeat is fresh, and the sweeps they serve.

Ages are by the store's clock, so this is for one look by a person; who takes a run over decides by a watch.
"""

from __future__ import annotations

from dataclasses import dataclass

from hostler.records import heartbeats, layout, sweeps
from hostler.records.body import Record
from hostler.store import Store

LEASE = 60.0  # where no project's record says


@dataclass(frozen=True)
class Serving:
    fresh: dict[str, Record]  # session → its heartbeat
    stale: dict[str, float]  # session → seconds since its last beat

    def serves(self, sweep: str) -> bool:
        """Whether a living worker takes runs of this sweep."""
        return any(not beat.get("only") or sweep in beat["only"] for beat in self.fresh.values())


def look(store: Store) -> Serving:
    lease = lease_of(store)
    ages = heartbeats.ages(store, heartbeats.readers_time(store))
    fresh = {s: heartbeats.read(store, s) for s, age in ages.items() if age <= lease}
    return Serving(
        fresh={s: beat for s, beat in fresh.items() if beat is not None},
        stale={s: age for s, age in ages.items() if age > lease},
    )


def lease_of(store: Store) -> float:
    found = sweeps.newest(store, layout.PROJECT)
    return float(found[1]["lease"]) if found else LEASE
