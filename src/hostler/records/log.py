"""The log of one run: the truth. Whoever creates entry k+1 after reading 1..k has decided.

Entries are immutable, so one that was read once is never read again. State is a pure fold (`state.py`).
"""

from __future__ import annotations

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import Record, decode, encode
from hostler.store import NotFound, Store

CLAIM = "claim"
RELEASE = "release"
STOP_REQUEST = "stop-request"
END = "end"
REOPEN = "reopen"

# Reasons of a stop that records know.
PERSON = "person"  # the run is to end
RUNG = "rung"  # others were better at this step: it waits, and may go on
CAP = "cap"  # money or time is used up: it waits for a person to allow more
PRUNE = "prune"  # a pruner ends it


@dataclass(frozen=True)
class RunKey:
    """A run's address: its sweep and its id."""

    sweep: str
    run: str

    @property
    def index(self) -> int:
        return index_of(self.run)


def index_of(run: str) -> int:
    """The index that a run's id begins with."""
    return int(run.split("-", 1)[0])


class RunLog:
    """Entries 1..head of one run, as far as this process has read them."""

    def __init__(self, store: Store, key: RunKey) -> None:
        self._store = store
        self.key = key
        self.entries: list[Record] = []

    @property
    def head(self) -> int:
        return len(self.entries)

    def copy(self) -> RunLog:
        """The same entries, read on by somebody else."""
        other = RunLog(self._store, self.key)
        other.entries = list(self.entries)
        return other

    def read_to(self, head: int) -> RunLog:
        """Read entries up to `head`, which a listing has shown to exist."""
        while self.head < head and self._read_next():
            pass
        return self

    def read_on(self) -> RunLog:
        """Read entries until there is no next one."""
        while self._read_next():
            pass
        return self

    def append(self, entry: Record, *, read: bool = True) -> bool:
        """Create entry head+1: True if it is ours, False if another's stands there (and is read now)."""
        data = encode(entry)
        if self._store.put(self._next_key(), data, if_absent=True):
            self.entries.append(decode(data, self._next_key()))
            return True
        if read:
            self._read_next()
        return False

    def _read_next(self) -> bool:
        try:
            blob = self._store.get(self._next_key())
        except NotFound:
            return False
        self.entries.append(decode(blob.data, self._next_key()))
        return True

    def _next_key(self) -> str:
        return layout.log_entry(self.key.sweep, self.key.run, self.head + 1)
