"""The state of a run: a pure fold of its log's entries.

States of a run: queued, running, paused, done, failed, diverged, pruned, stopped. Preempted, released
and lost are ends of an attempt, not of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from hostler.frozen import dataclass
from hostler.records.body import Record
from hostler.records.run import log
from hostler.spec.states import (
    ENDED,
    PAUSED,
    QUEUED,
    RUNNING,
)

LOST = "lost"  # no state of a run: it counts as this where its script by hand is dead
UNREADABLE = "unreadable"  # no state of a run: what readers show of one whose log is damaged


@dataclass(frozen=True)
class Tally:
    """Attempts that brought nothing, by what they count against, since the last reopen."""

    failures: int = 0
    tempfail: int = 0
    lost: int = 0
    same_error: int = 0  # how often the newest error came in a row, progress or not
    signature: str = ""


@dataclass(frozen=True)
class RunState:
    state: str = QUEUED
    head: int = 0
    attempt: int = 0  # number (= k) of the newest claim; 0 before the first
    attempts: int = 0  # how many there were
    session: str | None = None  # of the holder, while running
    host: str | None = None  # of the newest attempt
    stop: str | None = None  # reason of a stop request the holder has not answered yet
    tally: Tally = field(default_factory=Tally)
    suspects: frozenset[str] = frozenset()  # checkpoints an attempt failed on before saving anything new
    claim: Record | None = None  # the newest claim
    end: Record | None = None  # the end, while it stands
    failure: Record | None = None  # the newest failure, kept for `errors`
    reopened: Record | None = None  # the newest reopen: today's code, a fresh start
    fresh_from: int = 0  # checkpoints of attempts before this entry are not to be used
    since: float = 0.0  # when the newest entry was written, by its writer's clock
    first: float = 0.0  # when the first claim was written
    seconds: float = 0.0  # spent by attempts that gave the run back, since the last reopen
    spent: float = 0.0  # by all attempts that are over, the lost ones too
    cost: float = 0.0  # of all attempts that said what they cost
    paused_by: str = ""  # while paused: the reason
    until: int = 0  # a pruner has let it go on up to this step
    freed: bool = False  # a person has resumed what a pruner had paused: it is let alone
    outgrew: int = 0  # bytes of a GPU that was too small: the next one must have more

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def fold(entries: Sequence[Record]) -> RunState:
    state = RunState()
    for k, entry in enumerate(entries, start=1):
        state = replace(_STEPS[entry["kind"]](state, entry, k), head=k, since=entry.get("at", 0.0))
    return state


def count(tally: Tally, attempt: Record) -> Tally:
    """The tally after an attempt that ended so: `counts`, `progress` and `signature` say how."""
    against = attempt.get("counts")
    signature = attempt.get("signature", "") if against == "failures" else ""  # a loss is no error of its own
    same = tally.same_error + 1 if signature and signature == tally.signature else int(bool(signature))
    tally = replace(tally, same_error=same, signature=signature or tally.signature)
    if attempt.get("progress"):
        return replace(tally, failures=0, tempfail=0, lost=0)
    if against is None:
        return tally
    return replace(tally, **{against: getattr(tally, against) + 1})


def _claim(state: RunState, entry: Record, k: int) -> RunState:
    lost = entry.get("after")  # the claimant found the attempt before it lost: no release tells of it
    return replace(
        state,
        state=RUNNING,
        attempt=k,
        attempts=state.attempts + 1,
        session=entry.get("session"),
        host=entry.get("host"),
        claim=entry,
        stop=None,
        end=None,
        tally=count(state.tally, lost) if lost else state.tally,
        failure=(lost or {}).get("failure") or state.failure,
        first=state.first or entry.get("at", 0.0),
        paused_by="",
        until=max(state.until, entry.get("until") or 0),
        spent=state.spent + ((lost or {}).get("seconds") or 0.0),
    )


def _release(state: RunState, entry: Record, k: int) -> RunState:
    suspects = state.suspects
    restored = entry.get("restored")
    if entry.get("suspect") and restored and not entry.get("progress"):
        suspects = suspects | {restored}
    return replace(
        state,
        state=entry.get("then", QUEUED),
        session=None,
        stop=None,
        tally=count(state.tally, entry),
        suspects=suspects,
        failure=entry.get("failure") or state.failure,
        seconds=state.seconds + (entry.get("seconds") or 0.0),
        spent=state.spent + (entry.get("seconds") or 0.0),
        cost=entry.get("cost") or state.cost,  # it says what all attempts so far have cost
        paused_by=str(entry.get("why") or "") if entry.get("then") == PAUSED else "",
        outgrew=max(state.outgrew, entry.get("outgrew") or 0),
    )


def _stop_request(state: RunState, entry: Record, k: int) -> RunState:
    return replace(state, stop=entry.get("reason", "person"))


def _end(state: RunState, entry: Record, k: int) -> RunState:
    return replace(
        state,
        state=entry["state"],
        session=None,
        stop=None,
        end=entry,
        spent=entry.get("total") or state.spent + (entry.get("seconds") or 0.0),
        cost=entry.get("cost") or state.cost,
        failure=entry.get("failure") or state.failure,
    )


def _reopen(state: RunState, entry: Record, k: int) -> RunState:
    source = entry.get("source") or (state.reopened or {}).get("source")  # a resume keeps a retry's code
    return replace(
        state,
        state=QUEUED,
        session=None,  # of a lost holder: it is fenced by this entry
        end=None,
        stop=None,
        tally=Tally(),
        seconds=0.0,
        suspects=frozenset(),
        reopened={**entry, "source": source},
        fresh_from=k if entry.get("fresh") else state.fresh_from,
        paused_by="",
        until=0 if entry.get("fresh") else state.until,
        outgrew=0,
        freed=state.freed or state.paused_by == log.RUNG,
    )


_STEPS = {
    log.CLAIM: _claim,
    log.RELEASE: _release,
    log.STOP_REQUEST: _stop_request,
    log.END: _end,
    log.REOPEN: _reopen,
}
