"""Who goes on with whom, and what a place is worth after one was asked to leave."""

from __future__ import annotations

from hostler.train.fused.places import GroupChoice, GroupPlace, Standing, after, began, choose, of, put

ONE, OTHER = GroupPlace("a", 4, 1), GroupPlace("b", 4, 0)


def test_a_place_is_kept_in_a_run_s_memory() -> None:
    memory: dict[str, object] = {}
    assert not began(memory) and of(memory) is None
    put(memory, ONE)
    assert began(memory) and of(memory) == ONE


def test_those_that_begin_go_together() -> None:
    assert choose([Standing(0), Standing(0)]) == GroupChoice((0, 1))


def test_those_of_one_group_go_on_together_wherever_each_is() -> None:
    found = choose([Standing(10, ONE), Standing(20, GroupPlace("a", 4, 2)), Standing(10, OTHER), Standing(0)])
    assert found == GroupChoice((0, 1), later=(2, 3))


def test_free_ones_go_with_others_that_are_as_far() -> None:
    found = choose(
        [
            Standing(10, GroupPlace()),
            Standing(10, GroupPlace()),
            Standing(20, GroupPlace()),
            Standing(10, ONE),
        ]
    )
    assert found == GroupChoice((0, 1), later=(2, 3))


def test_what_began_alone_goes_on_alone() -> None:
    assert choose([Standing(5), Standing(0)]) == GroupChoice((1,), alone=(0,))
    assert choose([Standing(5)]) == GroupChoice((), alone=(0,))


def test_place_survives_a_preemption_or_cap_and_nothing_else() -> None:
    assert after("preempted", ONE) == ONE and after("cap", ONE) == ONE
    assert after("rung", ONE) == GroupPlace() and after("person", ONE) == GroupPlace()
