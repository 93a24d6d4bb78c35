"""The log of one run: the truth. Whoever creates entry k+1 after reading 1..k has decided.

Entries are immutable, so one that was read once is never read again. State is a pure fold (`state.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isnan
from typing import Any

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import (
    HINT,
    MOMENT,
    NUMBER,
    PART,
    TABLE,
    TEXT,
    WHOLE,
    Field,
    Record,
    check_numbers,
    checked,
    checked_rows,
    decode,
    encode,
)
from hostler.spec.states import ENDED, PAUSED, QUEUED
from hostler.store import NotFound, Store
from hostler.store.base import keys

CLAIM = "claim"
RELEASE = "release"
STOP_REQUEST = "stop-request"
END = "end"
REOPEN = "reopen"

RELEASED = (QUEUED, PAUSED)  # states of a run that was given back
ENDS = ENDED  # states of a run that has ended

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


def heads(store: Store, sweep: str, after: str = "") -> dict[str, int]:
    """run → number of the newest entry of its log, in one listing of the keys after this one."""
    at = len(layout.logs_of(sweep))
    return newest_of(list(keys(store, layout.logs_of(sweep), after)), at)


_ENTRY = len("-000001.json")


def newest_of(names: Sequence[str], at: int = 0) -> dict[str, int]:
    """run → the number of its newest entry, of names under log/ in their order, each from `at` on; strays are
    passed over. There are tens of thousands: where the newest end as entries do, as all do without strays,
    none is taken apart alone. Pure."""
    newest = {name[at:-_ENTRY]: name[-_ENTRY:] for name in names}  # of a run the newest comes last
    numbers = {end: int(end[1:-5]) for end in {*newest.values()} if _is_entry(end)}
    try:
        last = {run: numbers[end] for run, end in newest.items()}
    except KeyError:
        parts = [name[at:].rpartition("-") for name in names]
        last = {run: int(rest[:-5]) for run, _, rest in parts if layout.is_entry_number(rest)}
    if layout.are_runs([*last]):
        return last
    return {run: k for run, k in last.items() if layout.is_run(run)}


def _is_entry(end: str) -> bool:
    return end[:1] == "-" and layout.is_entry_number(end[1:])


def head(store: Store, key: RunKey) -> int:
    """Number of the newest entry of one run's log; 0 if it has none."""
    prefix = f"{layout.logs_of(key.sweep)}{key.run}-"
    rests = [entry.key[len(prefix) :] for entry in store.list(prefix)]
    return max((int(rest[:-5]) for rest in rests if layout.is_entry_number(rest)), default=0)


def closes(entry: Record) -> bool:
    """Whether an entry that follows an attempt's claim closes the attempt: every one but a stop request."""
    return entry["kind"] != STOP_REQUEST  # type: ignore[no-any-return]


def parse_entry(data: bytes, key: str) -> Record:
    """The entry of a run's log, or the copy of an end, that these bytes hold: every field that readers use is
    of its type. DamagedError otherwise."""
    record = checked(decode(data, key), FIELDS, key)
    kind = record.get("kind")
    if kind == END:
        known = record.get("state") in ENDS
    elif kind == RELEASE:
        known = record.get("then", RELEASED[0]) in RELEASED
    else:
        known = kind in (CLAIM, STOP_REQUEST, REOPEN)
    if not known or record.get("counts") not in _COUNTED:
        raise DamagedError(f"{key} is not an entry of a run's log", HINT)
    totals = record.get("metrics")
    if totals:
        for total in totals.values():
            if type(total) is not dict or "last" not in total:
                raise DamagedError(f"{key} is damaged: a metric of it has no values", HINT)
            check_numbers(total, key)
    check_tables(record, key)
    return record


def check_tables(record: Record, key: str) -> None:
    """DamagedError unless the tables in these fields hold what hostler writes there."""
    for name in record.keys() & _TABLES.keys():
        _check_table(record[name] or {}, name, key)


def check_block(name: str, cells: Sequence[Any], key: str) -> None:
    """The same of a column of numbers of one type: if the least and the largest fit, so do all between."""
    kinds, fits = FIELDS[name]
    if not cells:
        return
    ordered = not isnan(sum(cells)) and type(cells[0]) in kinds and name not in _TABLES
    if not ordered or (fits is not None and not (fits(min(cells)) and fits(max(cells)))):
        check_cells(name, cells, key)  # which names it, or finds that all is well


def check_cells(name: str, cells: Iterable[Any], key: str) -> None:
    """DamagedError unless all of these may be the value of a field: a column of many entries at once."""
    kinds, fits = FIELDS[name]
    for cell in cells:
        if type(cell) not in kinds or (fits is not None and cell is not None and not fits(cell)):
            checked({name: cell}, FIELDS, key)  # which names it
        if cell and name in _TABLES:
            _check_table(cell, name, key)


def _check_table(table: Record, name: str, key: str) -> None:
    if name in ("use", "phases"):
        check_numbers(table, key)
    elif name in _BY_METRIC:
        for row in checked_rows(list(table.values()), _TABLES[name], key, [*_TABLES[name], "value"]):
            check_numbers({"value": row["value"]}, key)
    elif checked(table, _TABLES[name], f"{key}: {name}").get("counts") not in _COUNTED:
        raise DamagedError(f"{key} is not an entry of a run's log", HINT)
    if name == "after" and table.get("failure"):
        _check_table(table["failure"], "failure", key)


_COUNTED = (None, "failures", "tempfail", "lost")
FIELDS: dict[str, Field] = {
    "kind": TEXT,
    "at": MOMENT,
    "attempt": WHOLE,
    "attempts": WHOLE,
    "state": TEXT,
    "then": TEXT,
    "session": PART,
    "host": TEXT,
    "step": WHOLE,
    "rung": WHOLE,
    "seconds": NUMBER,
    "total": NUMBER,
    "started": MOMENT,
    "exit": WHOLE,
    "code": TEXT,
    "cost": NUMBER,
    "copy_of": PART,
    "failure": TABLE,
    "why": TEXT,
    "reason": TEXT,
    "counts": TEXT,
    "signature": TEXT,
    "restored": TEXT,
    "config": TABLE,
    "metrics": TABLE,
    "use": TABLE,
    "phases": TABLE,
    "trackers": TABLE,
    "together": WHOLE,
    "outgrew": WHOLE,
    "gpu": TABLE,
    "until": WHOLE,
    "after": TABLE,
    "source": TABLE,
    "ran": TABLE,
    "kept": TABLE,
    "means": TABLE,
}
_BY_METRIC = ("kept", "means")  # metric → table
_TABLES: dict[str, dict[str, Field]] = {
    "after": {
        "counts": TEXT,
        "signature": TEXT,
        "attempt": WHOLE,
        "failure": TABLE,
        "why": TEXT,
        "seconds": NUMBER,
    },
    "failure": {"kind": TEXT, "message": TEXT, "advice": TEXT, "traceback": TEXT},
    "ran": {"facts": PART},
    "use": {},
    "phases": {},
    "gpu": dict.fromkeys(("memory", "share", "use", "used", "rate"), NUMBER),
    "kept": {"goal": TEXT, "step": WHOLE},
    "means": {"of": WHOLE},
}


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
        log = RunLog(self._store, self.key)
        log.entries = list(self.entries)
        return log

    def read_to(self, head: int) -> RunLog:
        """Read entries up to `head`, which a listing has shown to exist."""
        while self.head < head and self._read_next():
            pass
        return self

    def read_on(self) -> RunLog:
        """Read entries up to the newest."""
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
        self.entries.append(parse_entry(blob.data, self._next_key()))
        return True

    def _next_key(self) -> str:
        return layout.log_entry(self.key.sweep, self.key.run, self.head + 1)


def readable(run_log: RunLog, say: Callable[[str], None]) -> RunLog:
    """The log read as far as it can be."""
    try:
        return run_log.read_on()
    except (DamagedError, NewerFormatError) as error:
        say(str(error))
        return run_log
