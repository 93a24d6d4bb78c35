"""The state of a run is a pure fold of its log."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from protocol_model.world import Entry, Log, Run


class Folded(NamedTuple):
    state: str = "queued"  # queued, running, ended
    holder: int = 0  # the attempt that holds the run
    stop: bool = False  # a person's request stands
    result: str = ""
    wrong: str = ""  # why the log is not one the protocol allows
    claims: int = 0


@lru_cache(maxsize=200_000)
def fold(log: Log) -> Folded:
    now = Folded()
    for k, entry in enumerate(log, 1):
        if entry is None:
            return now._replace(wrong=f"entry {k} is missing and a later one is there")
        now = _after(now, k, entry)
        if now.wrong:
            return now
    return now


def standing(run: Run) -> Folded:
    """What those who decide take the run for. (The copy counts only where the rules are broken.)"""
    now = fold(known(run.log))
    return now._replace(state="ended", result=run.copy) if run.copy else now


def known(log: Log) -> Log:
    """What a reader gets: entries 1, 2, 3… up to the first absent one."""
    return log[: log.index(None)] if None in log else log


def entry_at(log: Log, k: int) -> Entry | None:
    return log[k - 1] if k <= len(log) else None


def with_entry(log: Log, k: int, entry: Entry) -> Log:
    padded = log + (None,) * (k - len(log))
    return (*padded[: k - 1], entry, *padded[k:])


def _after(now: Folded, k: int, entry: Entry) -> Folded:
    wrong = _wrong(now, k, entry)
    if wrong:
        return now._replace(wrong=wrong)
    if entry.kind == "claim":
        return now._replace(state="running", holder=k, claims=now.claims + 1)
    if entry.kind == "release":
        return now._replace(state="queued", holder=0)
    if entry.kind == "stop":
        return now._replace(stop=True)
    if entry.kind == "end":
        return now._replace(state="ended", holder=0, result=entry.result)
    return Folded(claims=now.claims)  # reopen: a new generation


def _wrong(now: Folded, k: int, entry: Entry) -> str:
    if entry.kind == "reopen":
        return "" if now.state == "ended" else f"entry {k} reopens a run that has not ended"
    if now.state == "ended":
        return f"entry {k} is a {entry.kind} after the end"
    if entry.kind == "claim" and entry.over != now.holder:
        return f"entry {k} claims over attempt {entry.over}, but {now.holder} holds the run"
    if entry.kind in ("release", "end") and entry.attempt != now.holder:
        return f"entry {k} is the {entry.kind} of attempt {entry.attempt}, but {now.holder} holds the run"
    if entry.kind == "stop" and now.state != "running":
        return f"entry {k} asks a run to stop that nobody holds"
    return ""
