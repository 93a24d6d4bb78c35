"""Frozen dataclasses that are quick to make, beside those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import cached_property
from typing import Any

import pytest

from hostler import frozen


@frozen.dataclass(frozen=True)
class Ours:
    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)
    d: float = field(default=0.5, repr=False, compare=False)

    @cached_property
    def twice(self) -> int:
        return 2 * self.a


@dataclasses.dataclass(frozen=True)
class Theirs:
    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)
    d: float = field(default=0.5, repr=False, compare=False)


@frozen.dataclass(frozen=True)
class One:
    """Of one field."""

    name: str


def both(*words: Any, **given: Any) -> tuple[Ours, Theirs]:
    return Ours(*words, **given), Theirs(*words, **given)


@pytest.mark.parametrize(
    ("words", "given"),
    [((1,), {}), ((1, "y"), {"c": [2]}), ((), {"b": "z", "a": 3}), ((1, "y", [], 2.0), {})],
)
def test_frozen_classes_behave_like_those_of_the_standard_library(
    words: tuple[Any, ...], given: dict[str, Any]
) -> None:
    ours, theirs = both(*words, **given)
    assert asdict(ours) == asdict(theirs) and list(vars(ours)) == list(vars(theirs))
    assert repr(ours).removeprefix("Ours") == repr(theirs).removeprefix("Theirs")
    assert [row.name for row in fields(ours)] == [row.name for row in fields(theirs)]
    assert asdict(replace(ours, a=9)) == asdict(replace(theirs, a=9))


@pytest.mark.parametrize(
    ("words", "given"), [((), {}), ((1,), {"a": 2}), ((1,), {"e": 2}), ((1, "x", [], 0.5, 6), {})]
)
def test_what_does_not_fit_is_a_type_error(words: tuple[Any, ...], given: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Theirs(*words, **given)
    with pytest.raises(TypeError, match=r"Ours\(\) has no"):
        Ours(*words, **given)


def test_equal_values_hash_alike_and_other_classes_are_not_equal() -> None:
    assert Ours(1, d=1.0) == Ours(1, d=2.0) != Ours(2) and Ours(1) != Theirs(1)
    assert hash(One("a")) == hash(One("a")) and {One("a"): 1}[One("a")] == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(Ours(1))


def test_nothing_can_be_changed_but_what_is_cached_is() -> None:
    ours = Ours(1)
    assert ours.twice == 2 and ours.twice == 2 and ours == Ours(1)
    with pytest.raises(FrozenInstanceError, match="cannot change 'a' of a Ours"):
        ours.a = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del ours.a
    assert ours.c is not Ours(1).c


def test_they_can_be_copied_and_pickled() -> None:
    ours = Ours(1, c=[1])
    for other in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert other == ours and isinstance(other, Ours)


@frozen.dataclass(frozen=True)
class Counted:
    a: int
    b: tuple[int, ...] = ()
    c: dict[str, int] = field(default_factory=dict)


@frozen.dataclass(frozen=True)
class Empty:
    pass


@frozen.dataclass(frozen=True)
class Hashed:
    a: int
    b: dict[str, int] = field(default_factory=dict, hash=False)


def test_the_hundredth_object_is_as_the_first() -> None:
    made = [Counted(number % 2, c={"x": 1}) for number in range(2 * frozen.MANY)]
    assert all(
        vars(one) == vars(made[place % 2]) and one == made[place % 2] for place, one in enumerate(made)
    )
    assert (
        made[-1].b == ()
        and Counted(1).c is not Counted(1).c
        and replace(made[-1], a=7) == Counted(7, c={"x": 1})
    )
    with pytest.raises(FrozenInstanceError, match="cannot change 'a' of a Counted"):
        made[-1].a = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Counted()  # type: ignore[call-arg]


def test_field_that_is_not_hashed_is_still_compared() -> None:
    assert hash(Hashed(1, {"x": 1})) == hash(Hashed(1)) and Hashed(1, {"x": 1}) != Hashed(1)


def test_class_without_fields_has_equal_objects() -> None:
    assert Empty() == Empty() and len({Empty(), Empty()}) == 1 and repr(Empty()) == "Empty()"
