"""Conditions as a terminal gives them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hostler.analysis.filters import isnt, keep, parse_all

COLUMNS = {"lr": [0.1, 0.2, 0.3], "data": ["../a", "b", "c..d"], "n": [3, True, "x"]}


def rows(*words: str) -> list[int]:
    return keep(COLUMNS, parse_all(words), 3)


def test_of_several_conditions_on_one_column_all_must_hold() -> None:
    assert rows("lr!=0.1", "lr!=0.2") == [2]
    assert rows("lr=0.15..", "lr=..0.25") == [1]


def test_two_dots_are_an_interval_only_between_numbers() -> None:
    assert rows("lr=0.2..0.3") == [1, 2]
    assert rows("data=../a") == [0]
    assert rows("data=c..d") == [2]


def test_an_interval_leaves_out_what_is_no_number() -> None:
    assert rows("n=2..4") == [0]


@pytest.mark.parametrize("several", [range(1, 3), np.arange(1, 3), {1, 2}, (n for n in (1, 2)), [1, 2]])
def test_several_values_may_come_as_anything_that_holds_some(several: object) -> None:
    assert keep({"seed": [0, 1, 2, 3]}, {"seed": several}, 4) == [1, 2]


def test_what_has_no_value_is_found_by_none() -> None:
    columns = {"x": ["a", math.nan, None]}
    assert keep(columns, {"x": None}, 3) == keep(columns, parse_all(["x=none"]), 3) == [1, 2]
    assert keep(columns, {"x": isnt(None)}, 3) == keep(columns, parse_all(["x!=NaN"]), 3) == [0]
    assert keep(columns, parse_all(["x=a,none"]), 3) == [0, 1, 2]
