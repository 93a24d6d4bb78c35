"""Empties the trash: deletes exactly the runs put there, and sweeps whose runs are all in it.

A sweep's spec goes before its log, because a sweep without its log would look like work to do. One that
was cut off leaves a sweep without a spec: nobody takes it, and emptying again finishes it.

`hostler rm --empty` decides again after its question, and asks `is_still` in the moment before each run goes.
This remains: a run that is restored while its own objects are being deleted has lost some of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

from hostler.errors import DamagedError
from hostler.records import layout
from hostler.records.packs.packed_store import seen_through
from hostler.records.packs.packer import forget
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import NotFound, Store

BATCH = 1000


def delete_run(store: Store, run: str) -> int:
    """Everything a run wrote, but for what is in a pack; its sweep still knows that it was. Returns how many
    objects went."""
    return _delete(seen_through(store).inner, layout.run(run))  # late writes too, which a pack hides


def delete_packed(store: Store, sweep: str, runs: Collection[str]) -> None:
    """The same of what these runs have in packs, where the sweep itself stays."""
    forget(seen_through(store), sweep, runs)


def delete_sweep(store: Store, name: str) -> int:
    """The sweep's own records, after those of its runs. Of its ledger the newest entry first: if that is cut
    off, what is left is its beginning."""
    entries = [entry.key for entry in store.list(layout.ledger(name))]
    gone = _delete(store, layout.specs(name))
    gone += _delete(store, layout.seals(name)) + _delete(store, layout.packs(name))
    for key in reversed(entries):
        store.delete(key)
    return gone + len(entries) + _delete(store, layout.sweep(name))


def is_whole(job: Job, doomed: Collection[str]) -> bool:
    """Whether all runs of the sweep are among these."""
    return all(run in doomed for run in sweeps.run_ids(job))


def is_still(store: Store, key: RunKey, turn: int, head: int) -> bool:
    """Whether a run is in the trash by entry `turn` of it, and entry `head` is the newest of its log."""
    later = (
        layout.trash_entry(key.sweep, key.run, turn + 1),
        layout.log_entry(key.sweep, key.run, head + 1),
    )
    return not any(_is_there(store, entry) for entry in later)


def emptied(store: Store, run: str) -> bool:
    """Whether nothing of a run's own is left, or what is left is in a pack that cannot be read."""
    try:
        return next(iter(store.list(layout.run(run))), None) is None
    except DamagedError:
        return next(iter(seen_through(store).inner.list(layout.run(run))), None) is None


def cut_off(store: Store) -> list[str]:
    """Sweeps whose deletion was not finished."""
    return [name for name in sweeps.names(store) if not sweeps.is_there(store, name)]


def _is_there(store: Store, key: str) -> bool:
    try:
        store.get(key)
    except NotFound:
        return False
    return True


def _delete(store: Store, prefix: str) -> int:
    """Delete all keys under a prefix, which ends in '/', so that 'run-1/' does not match 'run-10/'."""
    assert prefix.endswith("/")
    keys: Iterable[str] = (entry.key for entry in list(store.list(prefix)))
    count = 0
    while batch := list(islice(keys, BATCH)):
        store.delete(*batch)
        count += len(batch)
    return count
