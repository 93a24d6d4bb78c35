"""Entries of a run's log, as frozen types: nothing else makes the records that are appended to it.

`Claim` takes the run, `StopRequest` asks its holder to leave, `Release` gives it back, `End` closes it and
`Reopen` queues it again. A field that is None is left out of the record. `state.py` folds what these write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from hostler.frozen import dataclass
from hostler.records.body import Record
from hostler.records.run import log
from hostler.spec.states import ENDED

_OF_THE_STORE = ("format", "token", "at", "attempt")  # of an entry that is copied: not part of its meaning


@dataclass(frozen=True)
class Lost:
    """The attempt before a claim, whose holder died without an entry. `progress`: it had saved something."""

    attempt: int
    progress: bool
    why: str = "lost"  # or how its platform says that it ended
    counts: str = "lost"
    failure: Mapping[str, Any] | None = None
    seconds: float | None = None  # from its claim to its last heartbeat, where there is one

    def record(self) -> Record:
        record: Record = {"why": self.why, "counts": self.counts, "attempt": self.attempt}
        record["progress"] = self.progress
        record |= {"failure": dict(self.failure)} if self.failure else {}
        return record if self.seconds is None else {**record, "seconds": self.seconds}


@dataclass(frozen=True)
class Claim:
    session: str = ""
    after: Lost | None = None
    until: int = 0  # a pruner lets the run go on, up to this step
    facts: Mapping[str, Any] = field(default_factory=dict)  # about machine, process and code

    def record(self) -> Record:
        after = self.after.record() if self.after else None
        session = {"session": self.session} if self.session else {}
        until = {"until": self.until} if self.until else {}
        return {**self.facts, "kind": log.CLAIM, **session, "after": after, **until}


@dataclass(frozen=True)
class StopRequest:
    reason: str
    by: str = ""

    def record(self) -> Record:
        return {"kind": log.STOP_REQUEST, "reason": self.reason, "by": self.by}


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended, and the state of its run after it: ended for good, queued again, or paused."""

    state: str
    why: str | None = None  # reason of a stop, or kind of failure
    failure: Mapping[str, Any] | None = None
    exit: int | None = None  # code, or minus the signal
    result: Any = None
    seconds: float | None = None  # of this attempt
    total: float | None = None  # of all attempts, the lost ones too
    cost: float | None = None  # of all attempts
    metrics: Mapping[str, Any] | None = None
    step: int | None = None
    kept: Mapping[str, Any] | None = None  # metric → goal, value and step of the best state that is kept
    means: Mapping[str, Any] | None = None  # metric → the mean of its last values, and of how many
    restored: str | None = None  # the checkpoint that the attempt went on from
    host: str | None = None
    attempts: int | None = None
    started: float | None = None  # when the run was first claimed
    code: str | None = None
    progress: bool | None = None  # it saved something new
    counts: str | None = None  # the budget that it counts against
    suspect: bool | None = None  # the restored checkpoint may be to blame
    signature: str | None = None
    outgrew: int | None = None  # bytes of the GPU, or of the part of one, that was too small
    by: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)  # notes, config, trackers, use of the machine

    @property
    def ends(self) -> bool:
        return self.state in ENDED

    def record(self) -> Record:
        named = {name: value for name in _FACTS if (value := getattr(self, name)) is not None}
        return {**self.more, **named}


_FACTS = tuple(row.name for row in fields(Outcome) if row.name not in ("state", "more"))


@dataclass(frozen=True)
class Release:
    attempt: int
    outcome: Outcome

    def record(self) -> Record:
        facts = self.outcome.record()
        return {**facts, "kind": log.RELEASE, "attempt": self.attempt, "then": self.outcome.state}


@dataclass(frozen=True)
class End:
    attempt: int
    outcome: Outcome

    def record(self) -> Record:
        return {
            **self.outcome.record(),
            "kind": log.END,
            "attempt": self.attempt,
            "state": self.outcome.state,
        }


@dataclass(frozen=True)
class Reopen:
    by: str = ""
    source: Record | None = None  # other code
    fresh: bool = False
    lost: int | None = None  # the attempt whose holder is gone

    def record(self) -> Record:
        entry: Record = {"kind": log.REOPEN, "by": self.by, "source": self.source, "fresh": self.fresh}
        return entry if self.lost is None else {**entry, "why": "lost", "attempt": self.lost}


Entry = Claim | StopRequest | Release | End | Reopen


def closing(attempt: int, outcome: Outcome) -> Release | End:
    """The entry that tells of an attempt's outcome."""
    return End(attempt, outcome) if outcome.ends else Release(attempt, outcome)


def copied_end(end: Record, run: str) -> Record:
    """The end of a run as that of another with the same parameters, which was never tried."""
    facts = {name: value for name, value in end.items() if name not in _OF_THE_STORE}
    return {**facts, "kind": log.END, "attempt": 0, "copy_of": run}


def restated_end(end: Record, totals: Mapping[str, Any], step: int) -> Record:
    """The end of a run once more, with more metrics: they were read from its stored output. Its moment, its
    attempt and all else of it stay."""
    facts = {name: value for name, value in end.items() if name not in ("format", "token")}
    return {**facts, "metrics": totals, "step": step}
