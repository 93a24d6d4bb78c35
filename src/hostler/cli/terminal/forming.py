"""Of runs whose workers have not all come: for whom they wait, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler.records.rows import Row
from hostler.records.run import heartbeats
from hostler.records.run.gang import Gang
from hostler.store import Store
from hostler.worker.gang import missing


def lines(store: Store, found: Sequence[Row]) -> Iterator[str]:
    """One for each of them."""
    forming = [row for row in found if row.forming]
    sessions = heartbeats.etags(store) if forming else ()
    beats = {one: beat for one in sessions if (beat := heartbeats.read(store, one)) is not None}
    for row in forming:
        seen = Gang(store, row.id, row.claim).look()
        told = missing.who(seen, beats, row.session or "", row.sweep)
        yield f"{row.name}: {row.forming} workers have come: {told}"
