from __future__ import annotations

from hostler.search.base import Go, Standing, Stop
from hostler.search.pruners import Median

ME = "0000009-s-me"
OTHERS = {f"{n:07d}-s-x": float(n) for n in range(5)}


def test_below_the_median_a_run_ends() -> None:
    judged = Median().judge(Standing(ME, 4), {4: {**OTHERS, ME: 1.9}})
    assert judged == Stop("below the median at step 4")


def test_at_the_median_it_goes_on() -> None:
    assert Median().judge(Standing(ME, 4), {4: {**OTHERS, ME: 2.0}}) == Go()


def test_with_too_few_others_nobody_ends() -> None:
    assert Median(others=6).judge(Standing(ME, 4), {4: {**OTHERS, ME: -9.0}}) == Go()


def test_only_the_same_level_counts() -> None:
    assert Median().judge(Standing(ME, 4), {2: OTHERS, 4: {ME: -9.0}}) == Go()


def test_levels_double_unless_a_distance_is_given() -> None:
    assert [Median(2).level(step, ME) for step in (1, 2, 3, 4, 7, 8, 33)] == [0, 2, 2, 4, 4, 8, 32]
    assert [Median(3, every=5).level(step, ME) for step in (2, 3, 7, 8, 14)] == [0, 3, 3, 8, 13]


def test_nobody_is_promoted() -> None:
    assert Median().promote({1: OTHERS}, list(OTHERS), over=True) is None
