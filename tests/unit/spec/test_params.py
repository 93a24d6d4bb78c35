from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.errors import UsageError
from hostler.spec.params import flatten, merge, nest, parse_pairs

keys = st.text(st.characters(exclude_characters=".", exclude_categories=["Cs"]), min_size=1, max_size=4)
tables = st.recursive(
    st.dictionaries(keys, st.integers() | st.text() | st.lists(st.integers()), min_size=1, max_size=3),
    lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=3),
    max_leaves=6,
)


@given(tables)
def test_flat_and_nested_are_the_same_thing(table: dict[str, Any]) -> None:
    assert nest(flatten(table)) == table


@given(tables, tables)
def test_a_merge_holds_all_of_the_second(base: dict[str, Any], over: dict[str, Any]) -> None:
    assert merge(merge(base, over), over) == merge(base, over)
    assert merge({}, over) == over


def test_pairs_are_read_by_the_scalar_rules_into_tables() -> None:
    words = ["lr=1e-3", "model.width=64", "model.name=a=b", "on=on", "empty=", "lr=2", "none=null", "t=12:30"]
    assert parse_pairs(words) == {
        "lr": 2,
        "model": {"width": 64, "name": "a=b"},
        "on": "on",
        "empty": "",
        "none": None,
        "t": "12:30",
    }


@pytest.mark.parametrize("words", [["lr"], ["=1"], ["a..b=1"], [".a=1"], ["a=1", "a.b=2"], ["a.b=2", "a=1"]])
def test_pairs_that_cannot_be_are_refused(words: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_pairs(words)
