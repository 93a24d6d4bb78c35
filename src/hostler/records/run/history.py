"""The attempts of a run, one line each, as its log tells them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hostler.frozen import dataclass
from hostler.records.body import Record
from hostler.records.run import log
from hostler.spec.states import PAUSED, asked_to, stop_reason


@dataclass(frozen=True)
class Try:
    """An attempt: its holder, its duration and its end. `number` is that of its claim; people count
    attempts by `ordinal`: 1, 2, 3."""

    number: int
    ordinal: int = 1
    host: str = ""
    session: str = ""
    started: float = 0.0
    ended: float | None = None
    outcome: str = "running"  # done, failed, stopped …; queued or paused with `why`; lost
    why: str = ""  # reason of a stop, or kind of failure
    seconds: float | None = None
    exit: int | None = None
    step: int | None = None
    restored: str | None = None  # the checkpoint it went on from
    failure: Record | None = None
    signature: str = ""
    together: int = 0  # others that its process trained with it

    @property
    def words(self) -> str:
        """How it ended, for people."""
        if self.outcome == "queued":
            return self.why or "given back"
        plain = self.why in ("", "person", "pause", self.outcome)
        why = stop_reason(self.why) if self.outcome == PAUSED else self.why
        return self.outcome if plain else f"{self.outcome}: {why}"


@dataclass(frozen=True)
class Event:
    """An entry that does not belong to an attempt: a person asked for a stop, or queued the run again."""

    number: int
    at: float
    what: str
    by: str = ""


def tries(entries: Sequence[Record]) -> list[Try]:
    found: list[Try] = []
    for k, entry in enumerate(entries, start=1):
        kind = entry["kind"]
        if kind == log.CLAIM:
            if found and found[-1].ended is None:
                after = entry.get("after") or {}
                why, lasted = str(after.get("why") or "lost"), after.get("seconds")
                found[-1] = replace(found[-1], outcome="lost", ended=entry.get("at"), seconds=lasted)
                if why != "lost":  # its platform told more
                    found[-1] = replace(found[-1], outcome="queued", why=why, failure=after.get("failure"))
            found.append(_begun(k, len(found) + 1, entry))
        elif kind in (log.RELEASE, log.END) and found and found[-1].ended is None:
            found[-1] = _closed(found[-1], entry)
    return found


def events(entries: Sequence[Record]) -> list[Event]:
    found = []
    for k, entry in enumerate(entries, start=1):
        what = _EVENTS.get(entry["kind"])
        if what:
            what = asked_to(entry["reason"]) if entry.get("reason") else what
            found.append(Event(k, entry.get("at") or 0.0, what, str(entry.get("by") or "")))
    return found


def closing(entries: Sequence[Record], attempt: int) -> Record | None:
    """The entry that gave this attempt's run back, or ended it; None if it was lost, or goes on."""
    for entry in entries[attempt:]:
        if entry["kind"] in (log.RELEASE, log.END):
            return entry
        if entry["kind"] == log.CLAIM:
            break
    return None


def unkept(entries: Sequence[Record]) -> list[str]:
    """Lines on files that the newest attempt which left any could not keep."""
    told = (entry["outputs"] for entry in reversed(entries) if isinstance(entry.get("outputs"), dict))
    left: Record = next(told, {})
    lines = left.get("unkept")
    return [str(line) for line in lines] if isinstance(lines, list) else []


_EVENTS = {log.STOP_REQUEST: "asked to stop", log.REOPEN: "queued again"}


def _begun(k: int, ordinal: int, entry: Record) -> Try:
    host, session = entry.get("host") or "", entry.get("session") or ""
    return Try(k, ordinal, host, session, entry.get("at") or 0.0)


def ordinal(entries: Sequence[Record], number: int) -> int:
    """The place among the run's attempts of the one with this claim: 1, 2, 3."""
    return sum(entry["kind"] == log.CLAIM for entry in entries[:number])


def _kind(failure: Any) -> str:
    return str(failure.get("kind") or "") if isinstance(failure, Mapping) else ""


def _closed(attempt: Try, entry: Record) -> Try:
    then: Any = entry.get("state") if entry["kind"] == log.END else entry.get("then", "queued")
    return replace(
        attempt,
        ended=entry.get("at"),
        outcome=str(then),
        why=entry.get("why") or _kind(entry.get("failure")),
        seconds=entry.get("seconds"),
        exit=entry.get("exit"),
        step=entry.get("step"),
        restored=entry.get("restored"),
        failure=entry.get("failure"),
        signature=entry.get("signature") or "",
        together=entry.get("together") or 0,
    )
