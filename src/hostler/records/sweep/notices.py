"""Messages to people: a log, entry n by put-if-absent, so that each event is told once.

Whoever creates entry n has read all before it, and so knows whether the event was told, how many messages
there were in the last hour, and what was held back. What comes in quiet hours or over the limit is held,
and so is what no service took; it goes along with the next message to the same people, or by itself once
somebody who may send looks.
"""

from __future__ import annotations

from collections.abc import Sequence

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import MOMENT, ROWS, TEXT, Record, checked, decode, encode
from hostler.spec.job import Notify
from hostler.store import NotFound, Store

HOUR = 3600.0
LOOK = 200  # entries back that are read: more than any limit allows in an hour


@dataclass(frozen=True)
class NoticeEvent:
    """An event to tell people. Two with the same id are the same."""

    id: str
    kind: str  # finished | failed | cap
    text: str


def settle(store: Store, event: NoticeEvent | None, notify: Notify, now: float, minutes: int) -> list[str]:
    """Write down what becomes of it: the lines to send now, if it is ours to send any. Without an event,
    those that were held. `now` is this machine's time, `minutes` since its midnight."""
    while True:
        known, last = _history(store)
        entry = decide(known, event, notify, now, minutes)
        if entry is None:
            return []
        if store.put(layout.notice(last + 1), encode(entry), if_absent=True):
            return list(entry["lines"]) if entry["sent"] else []


def hold(store: Store, lines: Sequence[str], notify: Notify, now: float) -> None:
    """No service took them: they go along with the next message."""
    entry = {"id": "", "sent": False, "lines": list(lines), "to": list(notify.to), "at": now}
    while not store.put(layout.notice(_history(store)[1] + 1), encode(entry), if_absent=True):
        pass


def decide(
    known: Sequence[Record], event: NoticeEvent | None, notify: Notify, now: float, minutes: int
) -> Record | None:
    """The entry to write; None if there is nothing to tell. Pure."""
    if event and any(record["id"] == event.id for record in known):
        event = None  # what was held may be told now
    ours = [record for record in known if record.get("to", list(notify.to)) == list(notify.to)]
    held = _held(ours)
    sent = [record for record in ours if record["sent"] and now - record["at"] < HOUR]
    free = len(sent) < notify.limit and not is_quiet(notify.quiet, minutes)
    said = {"to": list(notify.to), "at": now}
    if event is None:
        return {"id": "", "sent": True, "lines": held, **said} if held and free else None
    lines = [event.text, *held] if free else [event.text]
    return {"id": event.id, "kind": event.kind, "sent": free, "lines": lines, **said}


def is_quiet(hours: str, minutes: int) -> bool:
    """Whether it is between "22:00-07:00"; midnight may lie between them. Pure."""
    if not hours:
        return False
    begin, end = (int(h) * 60 + int(m) for h, m in (part.split(":") for part in hours.split("-")))
    return begin <= minutes < end if begin <= end else minutes >= begin or minutes < end


def _held(known: Sequence[Record]) -> list[str]:
    """Lines that were not sent since the last message that was."""
    lines: list[str] = []
    for record in known:
        lines = [] if record["sent"] else [*lines, *record["lines"]]
    return lines


def _history(store: Store) -> tuple[list[Record], int]:
    """The last entries, and the number of the newest."""
    listed = [entry.key for entry in store.list(layout.NOTICES)]
    names = ((layout.numbers(key.removeprefix(layout.NOTICES)[:-5]), key) for key in listed)
    numbers = sorted((n[0], key) for n, key in names if n)
    rows = []
    for _, key in numbers[-LOOK:]:
        try:
            record = checked(decode(store.get(key).data, key), _FIELDS, key, ["id", "lines", "at"])
            rows.append({"sent": False, **record})
        except (NotFound, DamagedError, NewerFormatError):
            continue
    return rows, numbers[-1][0] if numbers else 0


_FIELDS = {"id": TEXT, "lines": ROWS, "to": ROWS, "at": MOMENT}
