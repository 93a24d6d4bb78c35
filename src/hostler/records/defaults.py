"""The ledger of defaults, in the project's record: values a command takes where none is given.

A default that changes is a new version of the record. Old runs keep the value that held when they started,
whatever the script says today.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hostler.records import layout
from hostler.records.body import MOMENT, Record, checked, decode, encode, taken_apart
from hostler.records.sweep.sweeps import newest
from hostler.store import Store

Values = Mapping[str, Any]
History = Sequence[tuple[float, Mapping[str, Values]]]  # since when, by command: the oldest first


def history(store: Store) -> History:
    """Values that held, and from when on. Reads once for each change of a default."""
    found: list[tuple[float, Mapping[str, Values]]] = []
    for entry in store.list(layout.PROJECT):
        record = checked(decode(store.get(entry.key).data, entry.key), {"at": MOMENT}, entry.key)
        with taken_apart(entry.key):
            if record.get("defaults"):
                found.append((float(record["at"]), {c: dict(v) for c, v in record["defaults"].items()}))
    return found


def at(known: History, command: Sequence[str], when: float) -> Values:
    """The defaults that held then; of what was not known then, the first that became known. Pure."""
    held: dict[str, Any] = {}
    for since, commands in reversed(known):
        values = commands.get(_scope(command), {})
        if since <= when:
            return {**held, **values}
        held.update(values)
    return held


def note(store: Store, command: Sequence[str], values: Values) -> bool:
    """Write down what holds from now on, if the ledger does not say so already. True if it was new."""
    scope = _scope(command)
    while True:
        found = newest(store, layout.PROJECT)
        if found is None:
            return False
        number, record = found
        known = record.get("defaults", {})
        if known.get(scope) == dict(values):
            return False
        kept: Record = {
            name: value for name, value in record.items() if name not in ("format", "token", "at")
        }
        kept["defaults"] = {**known, scope: dict(values)}
        if store.put(layout.project(number + 1), encode(kept), if_absent=True):
            return True


@dataclass
class Ledger:
    """Defaults that this process has noted already, so that its runs need not ask again."""

    _noted: dict[str, Values] = field(default_factory=dict)

    def note(self, store: Store, command: Sequence[str], values: Values) -> None:
        if self._noted.get(_scope(command)) != values:
            note(store, command, values)
            self._noted[_scope(command)] = values


def _scope(command: Sequence[str]) -> str:
    return " ".join(command)
