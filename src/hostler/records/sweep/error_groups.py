"""Failures grouped by error: the same error in a hundred runs is one group. Read from the runs' logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records.body import Record
from hostler.records.rows import Row
from hostler.records.run import control
from hostler.records.run.history import Try, tries
from hostler.records.run.state import UNREADABLE
from hostler.spec.states import DONE, ENDED, FAILED
from hostler.store import Store

NAMED = 3  # runs that a command names one by one


@dataclass(frozen=True)
class Failed:
    """An attempt that failed."""

    run: str
    state: str  # the run's, now
    attempt: int
    host: str
    signature: str
    failure: Record
    id: str = ""
    at: float | None = None  # when it ended, by its worker's clock


@dataclass(frozen=True)
class ErrorGroup:
    """The same error, wherever it came."""

    kind: str
    message: str
    count: int  # attempts
    runs: tuple[str, ...]
    hosts: dict[str, int]
    advice: str
    traceback: str
    signature: str
    retry: str = ""  # the command that tries its failed runs again
    ids: tuple[str, ...] = ()  # of its runs
    first: float | None = None  # when it was seen first, and last
    last: float | None = None


def groups(failed: Sequence[Failed]) -> list[ErrorGroup]:
    """Most frequent first; the newest of each speaks for it. Pure."""
    alike: dict[tuple[str, str], list[Failed]] = {}
    for one in failed:
        mark = one.signature or str(one.failure.get("message", ""))
        alike.setdefault((str(one.failure.get("kind", "")), mark), []).append(one)
    return sorted(map(_group, alike.values()), key=lambda group: -group.count)


def _group(alike: list[Failed]) -> ErrorGroup:
    last, times = alike[-1], [one.at for one in alike if one.at]
    return ErrorGroup(
        kind=str(last.failure.get("kind", "")),
        message=str(last.failure.get("message", "")),
        count=len(alike),
        runs=tuple(dict.fromkeys(one.run for one in alike)),
        hosts=dict(Counter(one.host for one in alike if one.host)),
        advice=advice(last.failure, last.run),
        traceback=str(last.failure.get("traceback") or ""),
        signature=last.signature,
        retry=retry_command([one.run for one in alike if one.state == FAILED]),
        ids=tuple(dict.fromkeys(one.id for one in alike)),
        first=min(times, default=None),
        last=max(times, default=None),
    )


def failed(store: Store, found: Iterable[Row], *, everything: bool = False) -> Iterator[Failed]:
    """Errors that stand: of runs that failed, wait for another try, or cannot be read. `everything`: all that
    there were."""
    for row in found:
        if row.state == UNREADABLE:
            yield Failed(row.name, row.state, 0, "", "", row.failure or {}, row.id)
            continue
        if row.failure is None and (not everything or (row.state in ENDED and row.attempt <= 1)):
            continue
        if row.state == DONE and not everything:
            continue
        failing = _failing(store, row)
        if not failing and row.failure:  # ended by another than the holder: lost too often
            failing = [Try(0, host=row.host or "", failure=row.failure)]
        for one in failing if everything else failing[-1:]:
            about = (one.host, one.signature, one.failure or {}, row.id, one.ended)
            yield Failed(row.name, row.state, one.number, *about)


def _failing(store: Store, row: Row) -> list[Try]:
    """Attempts that failed; of a log that is damaged before its end, what the end says has to do."""
    try:
        return [one for one in tries(control.entries_of(store, row.key)) if one.failure]
    except (DamagedError, NewerFormatError):
        return []


def advice(failure: Record, name: str) -> str:
    """Advice about a failure, with the run's own name in its commands."""
    text = str(failure.get("advice") or "")
    return re.sub(r"(hostler [^`;,]*?)\bRUN\b", lambda found: found[1] + name, text)


def retry_command(names: Iterable[str]) -> str:
    """The command that tries these runs again, or, if they are many, all failed runs of their sweeps."""
    runs = list(dict.fromkeys(names))
    if len(runs) > NAMED:
        runs = list(dict.fromkeys(name.partition("/")[0] for name in runs))
    return f"hostler retry {' '.join(runs)}" if runs else ""
