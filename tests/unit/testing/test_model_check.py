"""The search itself: it must find what is wrong, by the shortest way, and never stop half-way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from protocol_model.check import search


@dataclass(frozen=True)
class Graph:
    ways: dict[int, list[int]]
    bad: frozenset[int] = frozenset()
    ends: frozenset[int] = frozenset()
    beyond: frozenset[int] = field(default_factory=frozenset)

    def start(self) -> int:
        return 0

    def steps(self, state: int) -> Iterator[tuple[str, int]]:
        for to in self.ways.get(state, []):
            yield f"to {to}", to

    def broken(self, state: int) -> str:
        return f"P1: {state}" if state in self.bad else ""

    def ended(self, state: int) -> bool:
        return state in self.ends

    def out_of_bounds(self, state: int) -> bool:
        return state in self.beyond


def test_the_shortest_way_to_a_broken_promise_is_shown() -> None:
    report = search(Graph({0: [1, 2], 1: [3], 2: [4], 3: [4]}, bad=frozenset({4})))
    assert (report.promise, report.trace) == ("P1", ("to 2", "to 4"))
    assert str(report).splitlines()[1:] == ["  1. to 2", "  2. to 4"]


def test_each_state_is_visited_once() -> None:
    report = search(Graph({0: [1, 2], 1: [2, 0], 2: [0]}, ends=frozenset({2})))
    assert (report.states, report.wrong) == (3, "")


def test_a_circle_that_never_leads_to_an_end_breaks_progress() -> None:
    report = search(Graph({0: [1, 3], 1: [2], 2: [1]}, ends=frozenset({3})))
    assert (report.promise, report.trace) == ("P5", ("to 1",))


def test_a_circle_that_can_be_left_does_not_break_progress() -> None:
    assert not search(Graph({0: [1], 1: [0, 2]}, ends=frozenset({2}))).wrong


def test_nothing_is_promised_out_of_bounds() -> None:
    assert not search(Graph({0: [1, 2]}, ends=frozenset({2}), beyond=frozenset({1}))).wrong


def test_a_search_that_would_not_be_whole_is_refused() -> None:
    with pytest.raises(RuntimeError, match="more than 5 states"):
        search(Graph({n: [n + 1] for n in range(100)}), limit=5)
