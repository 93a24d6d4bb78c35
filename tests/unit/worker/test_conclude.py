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


# kind, exception, message, chained cause -> tries before any progress, with `retries` as it is and given as 4
CERTAIN: list[tuple[str, str, str, str, int, int]] = [
    (kinds.USAGE, "", "unrecognized arguments: --foo", "", 1, 1),
    (kinds.SYNTAX, "SyntaxError", "invalid syntax", "", 1, 1),
    (kinds.IMPORT_ERROR, "ModuleNotFoundError", "No module named 'x'", "", 1, 1),
    (kinds.ERROR, "TypeError", "f() got an unexpected keyword argument 'timeout'", "", 1, 1),
    (kinds.ERROR, "NameError", "name 'x' is not defined", "", 1, 1),
    (kinds.ERROR, "AttributeError", "module 'torch' has no attribute 'x'", "", 1, 1),
    (kinds.ERROR, "TypeError", "'NoneType' object is not subscriptable", "", 2, 5),
    (kinds.ERROR, "KeyError", "'lr'", "", 2, 5),
    (kinds.ERROR, "ValueError", "bad lr", "", 2, 5),
    (kinds.ERROR, "RuntimeError", "mat1 and mat2 shapes cannot be multiplied", "", 2, 5),
    (kinds.ERROR, "RuntimeError", "DataLoader worker (pid 7) exited unexpectedly", "", 3, 5),
    (kinds.ERROR, "RuntimeError", "Connection reset by peer", "", 3, 5),
    (kinds.ERROR, "FileNotFoundError", "No such file: 'a.csv'", "", 3, 5),
    (kinds.ERROR, "OSError", "[Errno 5] Input/output error", "", 3, 5),
    (kinds.ERROR, "HTTPError", "503", "", 3, 5),
    (kinds.ERROR, "MyError", "no", "", 3, 5),
    (kinds.ERROR, "TypeError", "no", "requests.exceptions.ConnectionError: refused", 3, 5),
    (kinds.ERROR, "TypeError", "no", "RuntimeError: CUDA error: unknown error", 3, 5),
    (kinds.CUDA_ERROR, "RuntimeError", "CUDA error", "", 3, 5),
    (kinds.CUDA_MEMORY, "OutOfMemoryError", "CUDA out of memory", "", 3, 5),
    (kinds.MEMORY, "MemoryError", "", "", 3, 5),
    (kinds.HANG, "", "no progress", "", 3, 5),
    (kinds.CRASH, "", "crashed (SIGSEGV)", "", 3, 5),
    (kinds.WORKER, "", "TypeError: ours", "", 3, 5),
    (kinds.PREPARE, "", "setup failed", "", 3, 5),
    (kinds.EXIT_CODE, "", "exit code 1: no", "", 3, 5),
    (kinds.KILLED, "", "killed by SIGKILL", "", 6, 6),
]


def tried(verdict: Verdict, job: Job, *, moved: bool = False, progress: bool = False) -> tuple[int, str]:
    """Attempts until the run has failed, and its message."""
    entries: list[dict[str, Any]] = []
    for _ in range(20):
        what = conclude(verdict, None, progress, fold(entries), job, moved=moved)
        entries += [{"kind": "claim"}, closing(1, what.outcome).record()]
        if what.outcome.ends:
            break
    return fold(entries).attempts, str((what.outcome.failure or {})["message"])


@pytest.mark.parametrize(("kind", "error", "message", "cause", "usual", "given"), CERTAIN)
def test_certain_error_is_tried_once_and_bad_luck_keeps_its_retries(
    kind: str, error: str, message: str, cause: str, usual: int, given: int
) -> None:
    text = f"Traceback (most recent call last):\n{cause}\n\nThe above exception …\n\n{error}: {message}"
    verdict = Verdict(kind, f"{error}: {message}", text, "s", error, "train.py:7")
    assert tried(verdict, JOB)[0] == usual
    assert tried(verdict, replace(JOB, retries=4, retries_given=True))[0] == given


TYPE_ERROR = Verdict(kinds.ERROR, "TypeError: no", "T", "s", "TypeError", "src/model.py:7")


def test_error_after_a_point_or_a_checkpoint_keeps_its_retries() -> None:
    assert tried(TYPE_ERROR, JOB, moved=True)[0] == 3
    assert tried(TYPE_ERROR, JOB, progress=True)[0] == 5


def test_another_error_at_the_second_try_is_not_certain() -> None:
    first = replace(TYPE_ERROR, error="KeyError", signature="a")
    before = fold(
        [{"kind": "claim"}, closing(1, conclude(first, None, False, RunState(), JOB).outcome).record()]
    )
    second = conclude(replace(first, signature="b"), None, False, before, JOB)
    assert second.outcome.state == "queued"
    assert conclude(first, None, False, before, JOB).outcome.state == "failed"


def test_message_names_the_users_line_and_why_it_is_over() -> None:
    assert tried(TYPE_ERROR, JOB)[1] == "TypeError: no (src/model.py:7)"
    twice = tried(replace(TYPE_ERROR, error="KeyError"), JOB)[1]
    assert twice == "TypeError: no (src/model.py:7, the same error twice before any progress)"
    assert "(src/model.py:7, failed 3 times" in tried(replace(TYPE_ERROR, error="MyError"), JOB)[1]


def test_certain_error_advises_a_repair_and_a_retry() -> None:
    failure = conclude(TYPE_ERROR, None, False, RunState(), JOB).outcome.failure or {}
    assert failure["advice"] == "fix the script, then hostler retry RUN"


@pytest.mark.parametrize("kind", [kinds.ERROR, kinds.TEMPFAIL, kinds.KILLED])
@pytest.mark.parametrize("seconds, to", [(3.9, "queued"), (4.0, "failed")])
def test_run_whose_time_is_spent_is_not_given_back(kind: str, seconds: float, to: str) -> None:
    """Six seconds of ten were spent before."""
    job = replace(JOB, limits=Limits(time=10.0))
    what = conclude(Verdict(kind, "boom"), None, True, RunState(seconds=6.0), job, seconds=seconds)
    assert what.outcome.state == to
    if to == "failed":
        assert what.outcome.failure is not None
        assert what.say == what.outcome.failure["message"] == "boom (its attempts have spent limits.time)"
        assert "raise `limits.time`" in what.outcome.failure["advice"]


def test_run_that_was_asked_to_go_is_given_back_without_time() -> None:
    """The next attempt says that the time is spent, before it starts anything."""
    job = replace(JOB, limits=Limits(time=10.0))
    verdict = Verdict(kinds.NOT_FINISHED, "")
    what = conclude(verdict, "preempted", True, RunState(seconds=9.0), job, seconds=2.0)
    assert what.outcome.state == "queued"
