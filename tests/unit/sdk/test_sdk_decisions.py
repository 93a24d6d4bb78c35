"""The pure decisions of the library: what is best, which run goes on, where ranks save."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hostler.errors import UsageError
from hostler.records.run.state import RunState
from hostler.sdk.alone.choose import NEW, REOPEN, TAKE, WATCH, decide
from hostler.sdk.checkpoint.best import Best, best_of, load
from hostler.sdk.leaving import Leaving
from hostler.sdk.ranks.agreement import AHEAD, Agreement
from hostler.sdk.ranks.board import FolderBoard
from hostler.sdk.saving import policy_of
from hostler.sdk.start import Wish
from hostler.spec.states import ALL


@pytest.mark.parametrize(
    ("goal", "values", "best"),
    [("max", [1, 3, 2], 3), ("min", [3, 1, 2], 1), ("max", [math.nan, -5], -5), ("min", [2, math.nan], 2)],
)
def test_the_best_is_by_goal_and_never_nan(goal: str, values: list[float], best: float) -> None:
    found = Best("m", goal)
    for step, value in enumerate(values):
        found = found.after(value, step)
    assert found.value == best and found.step == values.index(best)
    assert load({"m": found.state()}) == {"m": found}


def test_an_equal_value_is_not_better() -> None:
    assert Best("m").after(1, 0).after(1, 9).step == 0


def test_a_goal_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="neither 'max' nor 'min'"):
        best_of("m", "largest")


@pytest.mark.parametrize(
    ("state", "gone", "what"),
    [
        ("queued", None, TAKE),
        ("running", True, TAKE),
        ("running", False, NEW),
        ("running", None, WATCH),
        ("paused", None, REOPEN),
        ("stopped", None, REOPEN),
        ("failed", None, REOPEN),
        ("diverged", None, REOPEN),
        ("done", None, NEW),
        ("pruned", None, NEW),
    ],
)
def test_unfinished_run_continues_and_a_done_one_gets_a_successor(
    state: str, gone: bool | None, what: str
) -> None:
    assert decide(RunState(state), gone, "auto") == decide(RunState(state), gone, "must") == what


@pytest.mark.parametrize("state", ALL)
def test_never_resuming_is_always_a_new_run(state: str) -> None:
    assert decide(RunState(state), True, "never") == NEW


def test_ranks_save_at_the_iteration_that_rank_0_chose_ahead(tmp_path: Path) -> None:
    ranks = [Agreement(FolderBoard(tmp_path), rank, 3) for rank in range(3)]
    ranks[0].propose(5, None)
    assert [rank.now(5) for rank in ranks] == [None] * 3
    assert [rank.now(6) for rank in ranks] == [None] * 3
    agreed = [rank.now(5 + AHEAD) for rank in ranks]
    assert all(a is not None and a.at == 5 + AHEAD and a.reason is None for a in agreed)
    met = [rank.met(5 + AHEAD, a) for rank, a in zip(ranks[::-1], agreed[::-1], strict=True) if a]
    assert met == [True] * 3
    assert [rank.now(6 + AHEAD) for rank in ranks] == [None] * 3


def test_stop_after_a_chosen_save_is_the_next_agreement(tmp_path: Path) -> None:
    ranks = [Agreement(FolderBoard(tmp_path), rank, 2) for rank in range(2)]
    ranks[0].propose(1, None)
    ranks[0].propose(2, "preempted")
    assert [(a.at, a.reason) for a in (rank.now(3) for rank in ranks) if a] == [(3, None)] * 2
    ranks[0].propose(4, "preempted")
    assert [(a.at, a.reason) for a in (rank.now(6) for rank in ranks) if a] == [(6, "preempted")] * 2


def test_what_an_earlier_launch_agreed_on_is_forgotten(tmp_path: Path) -> None:
    Agreement(FolderBoard(tmp_path), 0, 2).propose(1, "preempted")
    again = Agreement(FolderBoard(tmp_path), 0, 2)
    assert again.now(10) is None and Agreement(FolderBoard(tmp_path), 1, 2).now(10) is None


def test_rank_past_the_choice_or_its_loops_ends_the_wait(tmp_path: Path) -> None:
    first, second = (Agreement(FolderBoard(tmp_path), rank, 2) for rank in range(2))
    first.propose(1, None)
    late, agreed = second.now(9), first.now(3)
    assert late and agreed
    assert not second.met(9, late) and not first.met(3, agreed)
    first.propose(4, None)
    assert first.now(3 + AHEAD) is None and (further := first.now(4 + 2 * AHEAD))
    second.leave()
    assert not first.met(8, further)


def test_rank_that_never_comes_is_not_waited_for_forever(tmp_path: Path) -> None:
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += 50

    first = Agreement(FolderBoard(tmp_path), 0, 2, clock=lambda: now[0], pause=pause)
    first.propose(1, None)
    agreed = first.now(3)
    assert agreed and not first.met(3, agreed)


@pytest.mark.parametrize(
    ("every", "seconds", "steps", "epochs"),
    [
        (None, None, None, True),
        (30, 30, None, False),
        ("5m", 300, None, False),
        ("500 steps", None, 500, False),
    ],
)
def test_how_often_to_save_is_said_in_words(
    every: str | float | None, seconds: float | None, steps: int | None, epochs: bool
) -> None:
    policy = policy_of(every)
    assert (policy.every_seconds, policy.every_steps, policy.each_epoch) == (seconds, steps, epochs)
    assert policy_of("epoch").each_epoch and not policy_of("epoch").automatic


@pytest.mark.parametrize("every", ["often", "0 steps", "x steps", -1])
def test_an_interval_that_is_none_is_refused(every: str | float) -> None:
    with pytest.raises(UsageError, match="save_every"):
        policy_of(every)


def test_a_way_to_resume_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="auto, never, must"):
        Wish(resume="yes").check()


def test_leaving_means_not_finished() -> None:
    assert Leaving("preempted").code == 75 and Leaving("interrupt").code == 130
    assert not isinstance(Leaving("x"), Exception)  # `except Exception` in a loop does not catch it
