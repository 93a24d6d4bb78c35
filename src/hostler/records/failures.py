"""The same error in run after run: a sweep that fails so is halted, before it burns the night."""

from __future__ import annotations

from hostler.records import layout, sweeps
from hostler.records.body import decode
from hostler.records.state import FAILED
from hostler.store import NotFound, Store


def halt_if_repeated(store: Store, sweep: str) -> bool:
    """Halt the sweep if its last `limits.failures` ends are all the same error."""
    limit = sweeps.load(store, sweep).limits.failures
    newest = sorted(store.list(layout.ends(sweep)), key=lambda entry: entry.modified)[-limit:]
    if len(newest) < limit:
        return False
    signatures, last = set(), {}
    for entry in newest:
        try:
            last = decode(store.get(entry.key).data, entry.key)
        except NotFound:
            return False
        signatures.add(last.get("signature", "") if last["state"] == FAILED else "")
    if len(signatures) > 1 or "" in signatures:
        return False
    message = (last.get("failure") or {}).get("message", "")
    return sweeps.halt(store, sweep, f"the same error {limit} times in a row: {message}")
