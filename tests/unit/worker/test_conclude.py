"""The table of ends: what each means for its run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hostler.records.run.entries import closing
from hostler.records.run.state import RunState, Tally, fold
from hostler.spec.job import Job, Limits
from hostler.worker.run import kinds
from hostler.worker.run.conclude import conclude, decline
from hostler.worker.run.failure import Verdict

JOB = Job(name="j", command=("x",))
ERROR = Verdict(kinds.ERROR, "boom", signature="s")
FULL = RunState(tally=Tally(failures=2, tempfail=3, lost=5))

# verdict, stop, progress, state before -> kind, state after
ROWS: list[tuple[Verdict, str | None, bool, RunState, str, str]] = [
    (Verdict(kinds.DONE, "done"), None, False, RunState(), "end", "done"),
    (Verdict(kinds.DONE, "done"), "person", False, RunState(), "end", "done"),
    (Verdict(kinds.NOT_FINISHED, ""), "person", True, RunState(), "end", "stopped"),
    (Verdict(kinds.NOT_FINISHED, ""), "pause", True, RunState(), "release", "paused"),
    (Verdict(kinds.NOT_FINISHED, ""), "cap", True, RunState(), "release", "paused"),
    (Verdict(kinds.NOT_FINISHED, ""), "rung", True, RunState(), "release", "paused"),
    (Verdict(kinds.NOT_FINISHED, ""), "prune", True, RunState(), "end", "pruned"),
    (Verdict(kinds.DONE, "done"), "rung", True, RunState(), "end", "done"),
    (Verdict(kinds.NOT_FINISHED, ""), "preempted", False, FULL, "release", "queued"),
    (Verdict(kinds.NOT_FINISHED, ""), "leaving", False, FULL, "release", "queued"),
    (Verdict(kinds.NOT_FINISHED, ""), "unreachable", False, FULL, "release", "queued"),
    (Verdict(kinds.NOT_FINISHED, ""), "orphaned", False, FULL, "release", "queued"),
    (Verdict(kinds.NOT_FINISHED, ""), "a later version's", True, RunState(), "release", "paused"),
    (ERROR, "person", False, RunState(), "end", "stopped"),
    (ERROR, "preempted", False, FULL, "release", "queued"),
    (ERROR, None, False, RunState(), "release", "queued"),
    (ERROR, None, False, FULL, "end", "failed"),
    (ERROR, None, True, FULL, "release", "queued"),
    (Verdict(kinds.TEMPFAIL, "75"), None, False, RunState(tally=Tally(tempfail=2)), "release", "queued"),
    (Verdict(kinds.TEMPFAIL, "75"), None, False, FULL, "end", "failed"),
    (Verdict(kinds.TEMPFAIL, "75"), None, True, FULL, "release", "queued"),
    (Verdict(kinds.KILLED, "kill"), None, False, RunState(tally=Tally(lost=4)), "release", "queued"),
    (Verdict(kinds.KILLED, "kill"), None, False, FULL, "end", "failed"),
    (Verdict(kinds.IMPORT_ERROR, "no x"), None, True, RunState(), "end", "failed"),
    (Verdict(kinds.TIME_LIMIT, "time"), None, True, RunState(), "end", "failed"),
    (Verdict(kinds.PREPARE, "setup"), None, False, RunState(), "release", "queued"),
    (Verdict(kinds.MACHINE, "disk"), None, False, RunState(), "end", "failed"),
    (Verdict(kinds.DAMAGED, "all"), None, False, RunState(), "end", "failed"),
]


@pytest.mark.parametrize(("verdict", "stop", "progress", "before", "kind", "to"), ROWS)
def test_each_end_means_one_thing(
    verdict: Verdict, stop: str | None, progress: bool, before: RunState, kind: str, to: str
) -> None:
    what = conclude(verdict, stop, progress, before, JOB)
    entry = closing(1, what.outcome).record()
    assert (entry["kind"], what.outcome.state) == (kind, to)
    assert ("failure" in entry) == (stop is None and to != "done")


def test_every_kind_is_concluded_without_a_stop_and_with_one() -> None:
    for kind in kinds.POLICY:
        for stop in (None, "person", "preempted"):
            assert conclude(Verdict(kind, "x"), stop, False, RunState(), JOB).outcome.state


@pytest.mark.parametrize(
    ("kind", "tries"), [(kinds.ERROR, 3), (kinds.TEMPFAIL, 4), (kinds.KILLED, 6), (kinds.SUPERVISOR_LOST, 6)]
)
def test_budgets_without_progress(kind: str, tries: int) -> None:
    entries: list[dict[str, Any]] = []
    for _ in range(20):
        what = conclude(Verdict(kind, "x", signature="s"), None, False, fold(entries), JOB)
        entries += [{"kind": "claim"}, closing(1, what.outcome).record()]
        if what.outcome.ends:
            break
    assert fold(entries).attempts == tries and fold(entries).state == "failed"


def test_same_error_ends_a_saving_run_but_exit_75_never() -> None:
    for kind, ends in ((kinds.ERROR, True), (kinds.TEMPFAIL, False), (kinds.KILLED, False)):
        entries: list[dict[str, Any]] = []
        for _ in range(12):
            job = replace(JOB, limits=Limits(failures=5))
            what = conclude(Verdict(kind, "x", signature="s"), None, True, fold(entries), job)
            entries += [{"kind": "claim"}, closing(1, what.outcome).record()]
            if what.outcome.ends:
                break
        assert what.outcome.ends == ends and len(entries) == (10 if ends else 24), kind


def test_progress_in_a_preempted_attempt_clears_what_counted_before() -> None:
    failed = conclude(ERROR, None, False, RunState(), JOB).outcome.record()
    saved = conclude(Verdict(kinds.NOT_FINISHED, ""), "preempted", True, RunState(), JOB).outcome.record()
    entries = [{"kind": "release", **failed}, {"kind": "release", **saved}]
    assert fold(entries[:1]).tally.failures == 1 and fold(entries).tally.failures == 0


def test_only_failures_make_the_restored_checkpoint_suspect() -> None:
    for kind, suspect in (
        (kinds.ERROR, True),
        (kinds.HANG, True),
        (kinds.KILLED, False),
        (kinds.TEMPFAIL, False),
    ):
        facts = conclude(Verdict(kind, "x"), None, False, RunState(), JOB).outcome.record()
        state = fold([{"kind": "claim"}, {"kind": "release", "restored": "1-2", **facts}])
        assert state.suspects == (frozenset({"1-2"}) if suspect else frozenset())


def test_machine_that_declines_counts_as_lost_and_finally_fails() -> None:
    verdict = Verdict(kinds.MACHINE, "no conda")
    assert decline(verdict, RunState(), JOB).outcome.state == "queued"
    assert decline(verdict, RunState(tally=Tally(lost=5)), JOB).outcome.state == "failed"
