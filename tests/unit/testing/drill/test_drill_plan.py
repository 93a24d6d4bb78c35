"""When a run is killed: inside its work, in order, the same for the same seed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hostler.drill.plan import HURRY, Pace, moments


@given(kills=st.integers(1, 50), seed=st.integers(0, 1000))
def test_all_kills_together_leave_some_of_the_work_to_do(kills: int, seed: int) -> None:
    plan = moments(kills, seed, saves=True)
    assert len(plan) == kills
    assert 0 < sum(moment.share for moment in plan) <= HURRY + 1e-9


def test_same_seed_gives_the_same_moments_and_another_gives_others() -> None:
    assert moments(5, 1, saves=True) == moments(5, 1, saves=True) != moments(5, 2, saves=True)


def test_a_script_that_saves_nothing_is_killed_once() -> None:
    [moment] = moments(3, 0, saves=False)
    assert not moment.saved


def test_a_kill_waits_for_a_checkpoint_but_not_for_ever() -> None:
    moment = moments(3, 0, saves=True)[1]
    assert not moment.is_due(moment.share - 0.01, True)
    assert not moment.is_due(moment.share + 0.01, False)
    assert moment.is_due(moment.share + 0.01, True)
    assert moment.is_due(HURRY, False)


def test_first_of_several_kills_may_come_before_any_save() -> None:
    assert [moment.saved for moment in moments(3, 0, saves=True)] == [False, True, True]
    assert [moment.saved for moment in moments(1, 0, saves=True)] == [True]


def test_progress_comes_from_the_output_or_else_from_age() -> None:
    assert Pace(1.0, 5.0, 200).share(50, 100.0) == 0.25
    assert Pace(1.0, 5.0).share(50, 2.0) == 0.25
