from __future__ import annotations

import json
from typing import Any

import pytest

from hostler.errors import UsageError
from hostler.sdk.loops import Loops
from hostler.sdk.position import Position


class Killed(Exception):
    pass


class Keeps:
    """Saves at every boundary, and is killed at one of them."""

    def __init__(self, position: Position, die_at: int | None = None) -> None:
        self._position, self._die_at = position, die_at
        self.state: dict[str, Any] | None = None
        self.boundaries, self.resumed, self.epochs = 0, 0, 0

    def boundary(self, kind: str) -> None:
        self.state = json.loads(json.dumps(self._position.state()))
        self.boundaries += 1
        if self.boundaries == self._die_at:
            raise Killed

    def epoch_began(self, depth: int) -> None:
        self.epochs += 1

    def goes_on(self) -> None:
        self.resumed += 1


def trial(script: Any, state: dict[str, Any] | None, die_at: int | None) -> tuple[list[Any], Keeps]:
    position = Position()
    if state is not None:
        position.load(state)
    keeps = Keeps(position, die_at)
    done: list[Any] = []
    try:
        script(Loops(position, keeps), done, position)
    except Killed:
        pass
    return done, keeps


def nested(loops: Loops, done: list[Any], position: Position) -> None:
    for epoch in loops.epochs(3):
        for step in loops.steps(4, itself=False):
            done.append((epoch, step, position.now))
        done.append(("eval", epoch))


def two_in_a_row(loops: Loops, done: list[Any], position: Position) -> None:
    for epoch in loops.epochs(2):
        done.append(("warm", epoch))
    for item in loops.steps(["a", "b", "c"], itself=False):
        done.append(item)


def two_inside(loops: Loops, done: list[Any], position: Position) -> None:
    for epoch in loops.epochs(2):
        for step in loops.steps(3, itself=False):
            done.append((epoch, "train", step))
        for item in loops.steps(iter("xy"), itself=False):
            done.append((epoch, item))


def broken(loops: Loops, done: list[Any], position: Position) -> None:
    for epoch in loops.epochs(3):
        for step in loops.steps(10, itself=False):
            done.append((epoch, step))
            if step == 2:
                break
        for step in loops.steps(2, itself=False):
            done.append((epoch, "after", step))


@pytest.mark.parametrize("script", [nested, two_in_a_row, two_inside, broken], ids=lambda f: f.__name__)
def test_a_run_killed_at_any_boundary_does_every_iteration_once(script: Any) -> None:
    whole, keeps = trial(script, None, None)
    assert keeps.boundaries > 4
    for die_at in range(1, keeps.boundaries + 1):
        first, killed = trial(script, None, die_at)
        second, _ = trial(script, killed.state, None)
        assert first + second == whole, die_at


def test_random_numbers_continue_exactly_where_a_loop_continues() -> None:
    _, killed = trial(nested, None, 2)  # inside the first epoch
    _, keeps = trial(nested, killed.state, None)
    assert keeps.resumed == 1
    _, killed = trial(nested, None, 5)  # after the first epoch
    _, keeps = trial(nested, killed.state, None)
    assert keeps.resumed == 1
    assert trial(nested, None, None)[1].resumed == 0


def test_iterable_is_skipped_as_far_as_it_was_consumed() -> None:
    taken: list[int] = []

    def source() -> Any:
        for n in range(5):
            taken.append(n)
            yield n

    def script(loops: Loops, done: list[Any], position: Position) -> None:
        for item in loops.steps(source(), itself=False):
            done.append(item)

    _, killed = trial(script, None, 3)
    taken.clear()
    done, _ = trial(script, killed.state, None)
    assert done == [3, 4] and taken == [0, 1, 2, 3, 4]


def test_resumable_loader_is_not_skipped_and_chooses_its_boundaries() -> None:
    def script(loops: Loops, done: list[Any], position: Position) -> None:
        for item in loops.steps([7, 8], itself=True):
            done.append(item)

    done, keeps = trial(script, None, None)
    assert done == [7, 8] and keeps.boundaries == 0


@pytest.mark.parametrize("count", ["3", b"3", 2.5, None])
def test_invalid_count_is_an_error_that_says_how(count: Any) -> None:
    with pytest.raises(UsageError, match=r"must be a whole number.*epochs\(10\)"):
        Loops(Position(), Keeps(Position())).epochs(count)
    with pytest.raises(UsageError, match=r"must be a whole number.*steps\(10\)"):
        Loops(Position(), Keeps(Position())).steps(count, itself=False)


def test_a_step_is_counted_if_absent() -> None:
    position = Position()
    assert [position.logged(["a"]) for _ in range(3)] == [0, 1, 2]
    assert position.logged(["val"]) == 2  # of the same row
    assert position.logged(["a"]) == 3
    again = Position()
    again.load(json.loads(json.dumps(position.state())))
    assert again.logged(["a"]) == position.logged(["a"]) == 4


def test_inside_a_loop_over_steps_the_loop_counts() -> None:
    position = Position()
    seen = []
    for _ in Loops(position, Keeps(position)).epochs(2):
        for _ in Loops(position, Keeps(position)).steps(2, itself=False):
            seen += [position.logged(["a"]), position.logged(["a"])]
        seen.append(position.logged(["val"]))
    assert seen == [0, 0, 1, 1, 2, 2, 2, 3, 3, 4]
