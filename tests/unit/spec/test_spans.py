"""Sets of numbers in few words."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from hostler.spec import spans
from hostler.spec.spans import Spans

NUMBERS = st.sets(st.integers(0, 300), max_size=120).map(sorted)


@given(NUMBERS)
def test_a_set_comes_back_from_what_was_written(numbers: list[int]) -> None:
    found = spans.from_json(json.loads(json.dumps(spans.to_json(spans.of(numbers)))))
    assert list(found) == numbers
    assert len(found) == len(numbers)


@given(NUMBERS, st.integers(-1, 310))
def test_it_knows_what_it_holds_and_how_many_are_smaller(numbers: list[int], one: int) -> None:
    found = spans.of(numbers)
    assert (one in found) == (one in numbers)
    assert found.rank(one) == sum(number < one for number in numbers)
    assert [found.nth(n) for n in range(len(numbers))] == numbers


def test_every_tenth_of_a_million_is_four_numbers() -> None:
    found = spans.of(range(9, 1_000_000, 10))
    assert len(found) == 100_000
    assert spans.to_json(found) == [[9, 1, 10, 100_000]]


def test_an_axis_that_grew_in_the_middle_is_one_stretch() -> None:
    cells = [c for c in range(6000) if 20 <= c % 30 < 30]
    assert len(spans.of(cells).stretches) == 1


def test_nothing_is_nothing() -> None:
    assert list(Spans()) == [] and len(Spans()) == 0 and 0 not in Spans()
    assert spans.whole(0) == Spans()
