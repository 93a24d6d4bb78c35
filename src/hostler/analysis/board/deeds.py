"""Actions of the page on runs: stop, try again, tag."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hostler.errors import HostlerError, UsageError
from hostler.records.rows import Row
from hostler.records.run import control
from hostler.records.sweep import sweeps
from hostler.spec.names import is_tag
from hostler.spec.states import PAUSED, STOPPED
from hostler.store import Store

BY = "hostler ui"

Wake = Callable[[Sequence[str]], str]  # starts workers for these sweeps; what to say of it


def stop(store: Store, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Queued ones end, running ones are asked to save and end."""
    return [_said(row, lambda row=row: control.stop(store, row.key, by=BY)) for row in rows]  # type: ignore[misc]


def retry(store: Store, rows: Iterable[Row], wake: Wake | None = None) -> list[dict[str, Any]]:
    """Failed, diverged and lost runs with the code they had; stopped and paused ones go on."""
    found = [_said(row, lambda row=row: _again(store, row)) for row in rows]  # type: ignore[misc]
    names = sorted({record["sweep"] for record in found if record["done"]})
    for name in names:
        sweeps.lift(store, name)
    if names and wake:
        note = wake(names)
        found = [{**record, "note": note} for record in found]
    return found


def tag(store: Store, rows: Iterable[Row], add: Any, remove: Any) -> list[dict[str, Any]]:
    """Give runs tags, and take others away."""
    more, less = _tags(add), _tags(remove)
    if not more and not less:
        raise UsageError("name a tag")
    return [_said(row, lambda row=row: _retag(store, row, more, less)) for row in rows]  # type: ignore[misc]


def _tags(given: Any) -> list[str]:
    tags = [str(one) for one in given] if isinstance(given, list) else []
    for word in tags:
        if not is_tag(word):
            raise UsageError(f"{word[:40]!r} is not a tag", "letters and signs without spaces or commas")
    return tags


def _retag(store: Store, row: Row, add: list[str], remove: list[str]) -> str:
    job = sweeps.load(store, row.sweep)
    if job.count > 1 and (shared := [one for one in remove if one in job.tags]):
        return f"{shared[0]} is a tag of the whole sweep, from its file"
    new = [one for one in add if one not in row.tags]
    gone = [one for one in remove if one in row.tags]
    if new or gone:
        sweeps.tag(store, row.sweep, "" if job.count == 1 else row.id, new, gone)
    remaining = [one for one in (*row.tags, *new) if one not in gone]
    return f"tagged {' '.join(remaining)}" if remaining else "no tags"


def _again(store: Store, row: Row) -> str:
    if row.trashed:
        return f"in the trash (hostler rm --restore {row.name})"
    if row.state in (STOPPED, PAUSED):
        return control.resume(store, row.key, by=BY)
    return control.retry(store, row.key, by=BY, lost=row.stale)


def _said(row: Row, act: Callable[[], str]) -> dict[str, Any]:
    try:
        text = act()
    except HostlerError as error:
        text = str(error)
    return {
        "id": row.id,
        "name": row.name,
        "sweep": row.sweep,
        "said": text,
        "done": text in control.DONE_SO,
    }
