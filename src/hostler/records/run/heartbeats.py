"""Heartbeats: one object per worker process, written every beat, and the watch over all of them.

No clock of one machine is compared with another's, but for people who may not write. A watch is a series of
reads, each stamped with the watcher's own monotonic clock before it is sent; a gap over a quarter of the
lease starts it anew (the watcher itself may have been frozen); stale = first and last stamp with one etag
are a lease apart. Beating = the etag was seen to change, less than half a lease ago; between the two nothing
is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hostler.errors import DamagedError, NewerFormatError, StoreError, StoreUnreachable
from hostler.records import layout
from hostler.records.body import (
    MOMENT,
    NUMBER,
    ROWS,
    TABLE,
    TEXT,
    WHOLE,
    Record,
    check_numbers,
    checked,
    checked_rows,
    decode,
    encode,
)
from hostler.records.run import log
from hostler.spec.names import is_part
from hostler.store import NotFound, Store
from hostler.store.base import Entry

PACKS = 1  # format of packed runs that this process reads


def beat(store: Store, session: str, sequence: int, facts: Record) -> None:
    store.put(layout.alive(session), encode({"sequence": sequence, "packs": PACKS, **facts}))


def older(store: Store, lease: float) -> list[str]:
    """Sessions that beat and cannot read packed runs: of a hostler from before there were any."""
    beating = [session for session, age in ages(store).items() if age <= lease]
    return [session for session in beating if not (read(store, session) or {}).get("packs")]


def silence(store: Store, *sessions: str) -> None:
    """Take heartbeats away: these workers have left in order, or are known to be dead."""
    store.delete(*[layout.alive(session) for session in sessions])


def etags(store: Store) -> dict[str, str]:
    """session → etag of its heartbeat, in one listing."""
    return {session: entry.etag for session, entry in _beats(store)}


def entries(store: Store) -> dict[str, Entry]:
    """session → its heartbeat's etag and time, in one listing."""
    return dict(_beats(store))


def read(store: Store, session: str) -> Record | None:
    key = layout.alive(session)
    try:
        record = checked(decode(store.get(key).data, key), _FIELDS, key)
    except NotFound:
        return None
    checked(record.get("room") or {}, _OF_ROOM, key)
    for run in (record.get("runs") or {}).values():
        checked_rows([run], _OF_RUN, key)
        check_numbers(run.get("metrics") or {}, key)
        for total in checked_rows(list((run.get("best") or {}).values()), {}, key):
            check_numbers(total, key)
        log.check_tables({"kept": run.get("kept")}, key)
    return record


def lasted(store: Store, claim: Record) -> float | None:
    """Seconds from a claim to its holder's last heartbeat, by the holder's clock; None if there is none."""
    session, began = claim.get("session"), claim.get("at")
    try:
        beat = read(store, session) if session else None
    except (DamagedError, NewerFormatError):
        return None
    ended = (beat or {}).get("at")
    return round(max(0.0, ended - began), 3) if ended and began else None


_FIELDS = {"runs": TABLE, "only": ROWS, "host": TEXT, "at": MOMENT, "room": TABLE}
_OF_ROOM = dict.fromkeys(("cpus", "memory", "gpus", "gpu_memory", "slots"), NUMBER)
_OF_RUN = {
    "metrics": TABLE,
    "step": WHOLE,
    "cost": NUMBER,
    "together": WHOLE,
    "attempt": WHOLE,
    "trackers": TABLE,
    "best": TABLE,
    "kept": TABLE,
}


def _beats(store: Store) -> Iterator[tuple[str, Entry]]:
    """Heartbeats by session; a stray name among them is passed over."""
    for entry in store.list(layout.ALIVE):
        if is_part(session := layout.session_of(entry.key)):
            yield session, entry


def seen(store: Store, session: str, say: Callable[[str], None] | None) -> Record | None:
    """The same for who only looks: `say` gets what is wrong with one that cannot be read, as if it were not
    there; without it that is an error."""
    try:
        return read(store, session)
    except (DamagedError, NewerFormatError) as error:
        if say is None:
            raise
        say(str(error))
        return None


@dataclass
class Watch:
    """Which sessions stand still, as one watcher has seen it."""

    lease: float
    beating: frozenset[str] = frozenset()  # as of the last read
    stale: frozenset[str] = frozenset()
    _last: float | None = None
    _since: dict[str, tuple[str, float]] = field(default_factory=dict)  # session → (etag, first stamp)

    def observe(self, stamp: float, seen: Mapping[str, str], sessions: Iterable[str]) -> frozenset[str]:
        """Take a read of all heartbeats, stamped before it was sent. `sessions` are those of interest;
        one without a heartbeat is a heartbeat standing still. Returns the stale ones. A read that a later
        one has overtaken says nothing."""
        if self._last is not None and stamp < self._last:
            return self.stale
        if self._last is not None and stamp - self._last > self.lease / 4:
            self._since, self.beating = {}, frozenset()
        self._last = stamp
        before = self._since
        self._since = {s: self._first_stamp(s, seen.get(s, ""), stamp) for s in sessions}
        self.beating = frozenset(s for s in self._since if self._beats(s, before.get(s), stamp))
        self.stale = frozenset(s for s, still in self.still.items() if still >= self.lease)
        return self.stale

    @property
    def still(self) -> dict[str, float]:
        """session → seconds for which its heartbeat was seen to stand still, as of the last read."""
        last = self._last or 0.0
        return {session: last - first for session, (_, first) in self._since.items()}

    def _first_stamp(self, session: str, etag: str, stamp: float) -> tuple[str, float]:
        known = self._since.get(session)
        return known if known and known[0] == etag else (etag, stamp)

    def _beats(self, session: str, before: tuple[str, float] | None, stamp: float) -> bool:
        etag, first = self._since[session]
        if before is not None and etag != before[0]:
            return etag != ""
        return session in self.beating and stamp - first < self.lease / 2


def ages(store: Store, clock: Callable[[Store], float] | None = None) -> dict[str, float]:
    """session → seconds since its last beat, all by the store's own clock (a probe tells its time, and is
    written only where somebody beats)."""
    beats = list(_beats(store))
    if not beats:
        return {}
    now = (clock or store_time)(store)
    return {session: max(0.0, now - e.modified) for session, e in beats}


def store_time(store: Store) -> float:
    """The store's own clock, read off an object written now."""
    probe = layout.clock_probe()
    store.put(probe, encode({"kind": "clock"}))
    now = next((entry.modified for entry in store.list(probe)), 0.0)
    store.delete(probe)
    return now


def readers_time(store: Store) -> float:
    """The same for who only looks: where nothing may be written, this machine's clock has to do."""
    try:
        return store_time(store)
    except StoreUnreachable:
        raise
    except StoreError:
        return time.time()
