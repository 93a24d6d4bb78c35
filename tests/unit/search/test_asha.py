from __future__ import annotations

import math

from hostler.search.asha import Asha
from hostler.search.base import Go, Pause, Resume, Standing, Stop

A, B, C, D = "0000000-s-aa", "0000001-s-bb", "0000002-s-cc", "0000003-s-dd"


def test_levels_are_powers_of_the_factor() -> None:
    asha = Asha(2, 3)
    assert [asha.level(step, A) for step in (0, 1, 2, 5, 6, 17, 18, 500)] == [0, 0, 2, 2, 6, 6, 18, 486]


def test_a_run_near_its_last_step_is_let_alone() -> None:
    assert Asha(1, 3, last=27).level(27, A) == 9
    assert Asha(1, 3, last=28).level(27, A) == 27


def test_the_first_runs_pause_since_nothing_is_known_yet() -> None:
    assert Asha().judge(Standing(A, 1), {1: {A: 0.9}}) == Pause()


def test_the_best_third_goes_on_and_the_others_pause() -> None:
    rungs = {1: {A: 0.1, B: 0.9, C: 0.5}}
    assert [Asha().judge(Standing(run, 1), rungs) for run in (A, B, C)] == [Pause(), Go(), Pause()]


def test_of_equals_exactly_a_third_goes_on() -> None:
    rungs = {1: dict.fromkeys((A, B, C), 0.5)}
    assert [Asha().judge(Standing(run, 1), rungs) for run in (A, B, C)] == [Go(), Pause(), Pause()]


def test_paused_run_among_the_best_is_promoted() -> None:
    assert Asha().promote({1: {A: 0.9, B: 0.1}}, [A, B], over=False) is None
    assert Asha().promote({1: {A: 0.9, B: 0.1, C: 0.2}}, [A, B, C], over=False) == Resume(A, 3)


def test_run_is_promoted_from_its_waiting_level_only() -> None:
    rungs = {1: {A: 0.9, B: 0.1, C: 0.2}, 3: {A: 0.9}}
    assert Asha().promote(rungs, [A, B, C], over=False) is None


def test_the_highest_level_is_promoted_first() -> None:
    runs = [f"{n:07d}-s-x" for n in range(12)]
    rungs = {1: {run: -n for n, run in enumerate(runs)}, 3: {run: n for n, run in enumerate(runs[:3])}}
    assert Asha().promote(rungs, runs, over=False) == Resume(runs[2], 9)


def test_best_paused_run_finishes_when_all_else_is_over() -> None:
    assert Asha().promote({1: {A: 0.1, B: 0.2}}, [A, B], over=True) == Resume(B, 3)


def test_search_with_a_finished_top_run_is_over() -> None:
    rungs = {1: {A: 0.1, B: 0.2, C: 0.3}, 3: {C: 0.3}}
    assert Asha().promote(rungs, [A, B], over=True) is None


def test_without_pause_who_falls_behind_ends() -> None:
    asha = Asha(pauses=False)
    assert asha.judge(Standing(A, 1), {1: {A: 0.1, B: 0.9}}) == Go()
    judged = asha.judge(Standing(A, 1), {1: {A: 0.1, B: 0.9, C: 0.5}})
    assert isinstance(judged, Stop) and "step 1" in judged.why


def test_without_pause_equals_of_the_best_go_on() -> None:
    assert Asha(pauses=False).judge(Standing(C, 1), {1: {A: 0.9, B: 0.9, C: 0.9}}) == Go()


def test_what_is_not_a_number_is_never_among_the_best() -> None:
    rungs = {1: {A: -math.inf, B: -math.inf, C: 0.0}}
    assert Asha().promote(rungs, [A, B, C], over=False) == Resume(C, 3)


def test_rare_logger_is_judged_at_its_highest_level() -> None:
    assert Asha().level(1000, A) == 729
