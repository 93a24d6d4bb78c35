from __future__ import annotations

import math

import pytest

from hostler.search.base import Go, Standing, Stop, Verdict
from hostler.search.pruners import Patience

ME = "0000000-s-me"


def judged(curve: list[float], **given: float) -> Verdict:
    return Patience(**{"patience": 3, **given}).judge(Standing(ME, 9, curve), {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("curve", "ends"),
    [
        ([1, 2, 3, 4, 5], False),
        ([1, 2, 2, 2], False),
        ([1, 2, 2, 2, 2], True),
        ([5, 4, 3, 4], True),
        ([5, 4, 3, 6], False),
        ([], False),
    ],
)
def test_run_ends_after_patience_without_improvement(curve: list[float], ends: bool) -> None:
    assert isinstance(judged(curve), Stop) == ends


def test_less_than_delta_is_no_improvement() -> None:
    assert isinstance(judged([1, 1.01, 1.02, 1.03], delta=0.1), Stop)
    assert judged([1, 1.2, 1.4, 1.6], delta=0.1) == Go()


def test_nan_first_score_is_improved_by_any_other() -> None:
    assert judged([-math.inf, -1e9, -math.inf, -math.inf], delta=1.0) == Go()


def test_it_has_its_first_steps_in_any_case() -> None:
    assert [Patience(first=5).level(step, ME) for step in (0, 4, 5, 6)] == [0, 0, 6, 7]
    assert Patience().level(0, ME) == 1
