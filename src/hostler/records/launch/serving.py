"""Workers whose heartbeat is fresh, and the sweeps they serve.

Ages are by the store's clock, so this is for one look by a person; who takes a run over decides by a watch.
"""

from __future__ import annotations

from collections.abc import Callable

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import Record, taken_apart
from hostler.records.run import heartbeats
from hostler.records.sweep import sweeps
from hostler.store import Store

LEASE = 60.0  # where no project's record says


@dataclass(frozen=True)
class Serving:
    fresh: dict[str, Record]  # session → its heartbeat
    stale: dict[str, float]  # session → seconds since its last beat

    def serves(self, sweep: str) -> bool:
        """Whether a living worker takes runs of this sweep."""
        return any(not beat.get("only") or sweep in beat["only"] for beat in self.fresh.values())


def look(store: Store, say: Callable[[str], None] | None = None) -> Serving:
    """`say` gets what cannot be read, and who wrote it does not count; without it that is an error."""
    lease = lease_of(store, say)
    ages = heartbeats.ages(store, heartbeats.readers_time)
    fresh = {s: heartbeats.seen(store, s, say) for s, age in ages.items() if age <= lease}
    return Serving(
        fresh={s: beat for s, beat in fresh.items() if beat is not None},
        stale={s: age for s, age in ages.items() if age > lease},
    )


def lease_of(store: Store, say: Callable[[str], None] | None = None) -> float:
    """`say` gets what is wrong with the project's record, and the usual lease has to do; without it that is
    an error."""
    try:
        found = sweeps.newest(store, layout.PROJECT)
        with taken_apart(layout.project(found[0] if found else 0)):
            return float(found[1]["lease"]) if found else LEASE
    except (DamagedError, NewerFormatError) as error:
        if say is None:
            raise
        say(str(error))
        return LEASE
