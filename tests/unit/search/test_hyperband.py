from __future__ import annotations

from collections import Counter

from hostler.search.base import Go, Pause, Resume, Standing
from hostler.search.pruners import Hyperband

BAND = Hyperband(1, 27, 3)
RUNS = [f"{n:07d}-s-x" for n in range(400)]


def of(bracket: int) -> list[str]:
    return [run for run in RUNS if BAND.bracket(run) == bracket]


def test_there_are_as_many_brackets_as_levels() -> None:
    assert BAND.brackets == 4
    assert Hyperband(1, 26, 3).brackets == 3
    assert Hyperband(2, 250, 5).brackets == 4


def test_each_bracket_begins_at_a_later_level() -> None:
    assert [BAND.level(26, of(bracket)[0]) for bracket in range(4)] == [9, 9, 9, 0]
    assert [BAND.level(1, of(bracket)[0]) for bracket in range(4)] == [1, 0, 0, 0]
    assert [BAND.level(3, of(bracket)[0]) for bracket in range(4)] == [3, 3, 0, 0]


def test_a_bracket_that_prunes_more_has_more_runs() -> None:
    found = Counter(BAND.bracket(run) for run in RUNS)
    assert found[0] > found[1] > found[2] > found[3] > 0
    assert abs(found[0] / len(RUNS) - 27 / 4 / (27 / 4 + 9 / 3 + 3 / 2 + 1)) < 0.02


def test_the_first_runs_are_of_several_brackets() -> None:
    assert len({BAND.bracket(run) for run in RUNS[:12]}) >= 3


def test_a_run_is_compared_within_its_bracket_alone() -> None:
    low, high = of(0)[:3], of(1)[:5]
    rungs = {3: {**dict.fromkeys(high, 1.0), low[0]: 0.2, low[1]: 0.1, low[2]: 0.0}}
    assert BAND.judge(Standing(low[0], 3), rungs) == Go()
    assert BAND.judge(Standing(low[1], 3), rungs) == Pause()


def test_each_bracket_promotes_its_own() -> None:
    high = of(1)[:3]
    rungs = {1: {of(0)[0]: 9.0}, 3: {run: float(n) for n, run in enumerate(high)}}
    assert BAND.promote(rungs, [of(0)[0], *high], over=False) == Resume(high[2], 9)
