"""Requests of a person, appended to a run's log: stop, pause, resume, retry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hostler.errors import DamagedError, NewerFormatError
from hostler.records.body import Record
from hostler.records.run.attempt import copy_end
from hostler.records.run.entries import End, Entry, Outcome, Release, Reopen, StopRequest
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.spec.states import DIVERGED, FAILED, PAUSED, QUEUED, RUNNING, STOPPED, asked_to
from hostler.store import Store

Decide = Callable[[RunState], Entry | str]


def stop(store: Store, key: RunKey, by: str = "") -> str:
    """End a queued or paused run; ask the holder of a running one to save and end. Returns what was done."""

    def decide(state: RunState) -> Entry | str:
        if state.ended:
            return f"already {state.state}"
        if state.state == RUNNING:
            return "already asked to stop" if state.stop == "person" else StopRequest("person", by)
        return _stopped(state, by)

    return _append(store, key, decide)


def kill(store: Store, key: RunKey, by: str = "") -> str:
    """End a run without waiting for its holder: whatever that writes later is fenced."""

    def decide(state: RunState) -> Entry | str:
        return f"already {state.state}" if state.ended else _stopped(state, by)

    return _append(store, key, decide)


def pause(store: Store, key: RunKey, by: str = "") -> str:
    def decide(state: RunState) -> Entry | str:
        if state.ended or state.state == PAUSED:
            return f"already {state.state}"
        if state.state == RUNNING:
            return f"already {asked_to(state.stop)}" if state.stop else StopRequest("pause", by)
        return Release(state.attempt, Outcome(PAUSED, "pause", by=by))

    return _append(store, key, decide)


def resume(store: Store, key: RunKey, by: str = "") -> str:
    """Queue a stopped or paused run again; it goes on from its last checkpoint."""

    def decide(state: RunState) -> Entry | str:
        if state.state in (STOPPED, PAUSED):
            return Reopen(by)
        if state.state == RUNNING and state.stop:
            return "still saving before it stops: resume it when it has stopped"
        if not state.ended:
            return f"already {state.state}"
        return f"{state.state}: only a stopped or paused run is resumed"

    return _append(store, key, decide)


def retry(
    store: Store,
    key: RunKey,
    by: str = "",
    *,
    source: Record | None = None,
    fresh: bool = False,
    lost: bool = False,
) -> str:
    """Queue a failed or diverged run again, with other code if given. `lost`: one without a holder, too."""

    def decide(state: RunState) -> Entry | str:
        if state.state in (FAILED, DIVERGED) or (fresh and state.ended):
            return Reopen(by, source, fresh)
        if state.state == RUNNING and lost:
            return Reopen(by, source, fresh, lost=state.attempt)
        if state.state in (QUEUED, RUNNING):
            return f"already {state.state}"
        if state.state in (STOPPED, PAUSED):
            return f"{state.state}: hostler resume continues it (or --fresh, from the beginning)"
        return f"{state.state}: only a failed, diverged or lost run is tried again"

    return _append(store, key, decide)


def _stopped(state: RunState, by: str) -> End:
    return End(
        state.attempt,
        Outcome(
            STOPPED,
            "person",
            by=by,
            attempts=state.attempts,
            host=state.host,
            started=state.first,
            cost=state.cost or None,
            total=round(state.spent, 3) or None,
        ),
    )


def _measured(store: Store, key: RunKey, state: RunState, outcome: Outcome) -> Outcome:
    """With what its attempts have logged, as their own end would tell."""
    if state.attempt <= state.fresh_from:
        return outcome
    from hostler.records.series import metrics  # only where a run that was started ends so

    try:
        points = metrics.read(store, key.run, state.attempt)
    except (DamagedError, NewerFormatError):
        return outcome
    step = max((point.step for point in points), default=None)
    return replace(outcome, metrics=metrics.summary(points) or None, step=step)


def _append(store: Store, key: RunKey, decide: Decide) -> str:
    """Append what the newest state calls for; whoever was faster changes the state, so decide again."""
    run_log = RunLog(store, key)
    while True:
        state = fold(run_log.read_on().entries)
        entry = decide(state)
        if isinstance(entry, str):
            return entry
        if isinstance(entry, End):
            entry = replace(entry, outcome=_measured(store, key, state, entry.outcome))
        if run_log.append(entry.record()):
            if isinstance(entry, End):
                copy_end(store, key, run_log.head, run_log.entries[-1])
            return _ANSWERS[entry.reason if isinstance(entry, StopRequest) else type(entry).__name__]


_ANSWERS = {
    "person": "asked to save and stop",
    "pause": "asked to save and pause",
    "Release": "paused",
    "End": "stopped",
    "Reopen": "queued again",
}

DONE_SO = frozenset(_ANSWERS.values())  # the answers that mean: something was appended


def state_of(store: Store, key: RunKey) -> RunState:
    return fold(RunLog(store, key).read_on().entries)


def entries_of(store: Store, key: RunKey) -> list[dict[str, Any]]:
    return RunLog(store, key).read_on().entries
