from __future__ import annotations

import math

import pytest

from hostler.errors import SpecError
from hostler.train.schedule import factor


def rates(name: str, total: int = 8, warmup: int = 0) -> list[float]:
    at = factor(name, total, warmup)
    return [round(at(step), 6) for step in range(total)]


def test_constant_is_constant() -> None:
    assert rates("constant") == [1.0] * 8


def test_cosine_begins_at_one_and_goes_to_nothing() -> None:
    assert rates("cosine")[0] == 1.0
    assert factor("cosine", 8)(8) == pytest.approx(0)
    assert rates("cosine")[4] == 0.5


def test_poly_falls_with_power_one_half_unless_told() -> None:
    assert rates("poly")[:4] == [1.0, round(1 / math.sqrt(2), 6), round(1 / math.sqrt(3), 6), 0.5]
    assert rates("poly_2")[3] == 0.0625
    assert rates("poly", warmup=2)[2:4] == [1.0, round(1 / math.sqrt(2), 6)]


def test_one_number_is_so_many_equal_drops() -> None:
    assert rates("step_3_0.1") == [1.0, 1.0, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001]


def test_a_list_is_relative_lengths_of_phases() -> None:
    assert rates("step_2,1,1_0.1") == [1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01]


def test_a_warm_up_is_linear_and_the_rest_follows() -> None:
    assert rates("constant", warmup=3)[:4] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("name", ["step", "step_3", "step_x_0.1", "step_2_x", "step_-1,1_0.1", "poly_x"])
def test_what_is_not_said_is_an_error_that_says_how(name: str) -> None:
    with pytest.raises(SpecError, match=r"step_3_0\.1|not a number"):
        factor(name, 8)


def test_an_unknown_one_gets_the_nearest() -> None:
    with pytest.raises(SpecError, match="did you mean 'cosine'"):
        factor("cosin", 8)
