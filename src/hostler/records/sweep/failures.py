"""The rule that halts a sweep when the same error comes in run after run."""

from __future__ import annotations

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.run.log import parse_entry
from hostler.records.sweep import sweeps
from hostler.spec.states import FAILED
from hostler.store import NotFound, Store
from hostler.store.base import Entry


def halt_if_repeated(store: Store, sweep: str) -> bool:
    """Halt the sweep if the last ends of `limits.failures` runs, since it was last lifted, are all the same
    error."""
    limit = sweeps.load(store, sweep).limits.failures
    lifted = max((entry.modified for entry in store.list(layout.halts(sweep))), default=0.0)
    ends: dict[str, Entry] = {}
    for entry in store.list(layout.ends(sweep)):  # in the order of their numbers: a run's newest stays
        if layout.is_log_entry(entry.key):
            ends[layout.split_log_entry(entry.key)[0]] = entry
    newest = sorted((e for e in ends.values() if e.modified > lifted), key=lambda e: e.modified)[-limit:]
    if not limit or len(newest) < limit:
        return False
    signatures, last = set(), {}
    for entry in newest:
        try:
            last = parse_entry(store.get(entry.key).data, entry.key)
        except (NotFound, DamagedError, NewerFormatError):
            return False
        signatures.add(last.get("signature", "") if last.get("state") == FAILED else "")
    if len(signatures) > 1 or "" in signatures:
        return False
    message = (last.get("failure") or {}).get("message", "")
    return sweeps.halt(store, sweep, f"the same error {limit} times in a row: {message}")
