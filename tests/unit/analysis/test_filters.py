"""Conditions as a terminal gives them."""

from __future__ import annotations

from hostler.analysis.filters import keep, parse_all

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
