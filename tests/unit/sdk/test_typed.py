"""Values that a checkpoint must give back as they were."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.errors import DamagedError
from hostler.sdk.checkpoint.typed import LEFT_OUT, Encoder, decode

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.binary(),
    st.binary().map(bytearray),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.datetimes(),
    st.timedeltas(),
    st.just("$"),
)
KEYS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(),
    st.binary(),
    st.tuples(st.integers(), st.text()),
    st.just("$"),
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.dictionaries(KEYS, inner, max_size=5)
    items = st.lists(inner, max_size=5)
    return st.one_of(
        items,
        items.map(tuple),
        items.map(lambda found: deque(found, 7)),
        pairs,
        pairs.map(OrderedDict),
        pairs.map(lambda found: defaultdict(list, found)),
        st.sets(KEYS, max_size=5),
        st.frozensets(KEYS, max_size=5),
    )


def there_and_back(value: Any) -> Any:
    encoder = Encoder()
    made = encoder.encode(value)
    assert encoder.lost == []
    return decode(json.loads(json.dumps(made, allow_nan=False)))


def same(one: Any, other: Any) -> bool:
    """Equal in value, type and order; NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or (one, math.copysign(1, one)) == (
            other,
            math.copysign(1, other),
        )
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    if isinstance(one, (list, tuple, deque)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(st.recursive(SCALARS, nested, max_leaves=20))
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert same(there_and_back(value), value)


@pytest.mark.parametrize(
    "value",
    [
        [1.0, float("nan")],
        float("-inf"),
        "\udc80 lone surrogate",
        Counter("abca"),
        range(3, 9, 2),
        slice(None, 3),
        Decimal("NaN"),
        Fraction(1, 3),
        Path("a/b"),
        PurePosixPath("/x"),
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
        datetime.time(1, 2, 3),
        deque([1, 2], maxlen=2),
        {1: {2: {3: ()}}},
        {True: 1, "True": 2},
        {"$": "tuple", "v": [1]},
        set(),
        b"",
    ],
    ids=lambda value: type(value).__name__,
)
def test_odd_values_come_back_too(value: Any) -> None:
    found = there_and_back(value)
    assert type(found) is type(value) and repr(found) == repr(value)


@pytest.mark.parametrize("value", [10**5000, -(10**5000), [1, 10**5000]], ids=["large", "small", "in a list"])
def test_integers_of_thousands_of_digits_come_back(value: Any) -> None:
    assert same(there_and_back(value), value)


def test_value_that_cannot_be_kept_is_left_out_and_named() -> None:
    encoder = Encoder()
    made = encoder.encode({"good": 1, "hooks": {3: lambda: 0}, "list": [object(), 2]}, ("sched",))
    assert [str(lost) for lost in encoder.lost] == [
        "sched.hooks.3 (a value of type builtins.function)",
        "sched.list.0 (a value of type builtins.object)",
    ]
    assert decode(made) == {"good": 1, "hooks": {}, "list": [None, 2]}


def test_value_that_contains_itself_is_named_and_harmless() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    encoder = Encoder()
    assert encoder.encode({"loop": loop}) == {"loop": [1, None]}
    assert [str(lost) for lost in encoder.lost] == ["loop.1 (it contains itself)"]


def test_the_same_list_twice_is_not_one_that_contains_itself() -> None:
    one = [1.5]
    assert there_and_back({"a": one, "b": one}) == {"a": [1.5], "b": [1.5]}


def test_a_subclass_is_not_silently_turned_into_its_base() -> None:
    class Mine(dict[str, int]):
        pass

    encoder = Encoder()
    assert encoder.encode(Mine(a=1)) is LEFT_OUT and len(encoder.lost) == 1


def test_a_default_factory_of_the_users_own_is_named() -> None:
    encoder = Encoder()
    encoder.encode({"d": defaultdict(lambda: 3)})
    assert "default factory" in encoder.lost[0].why


def test_unknown_type_is_damage_and_nothing_is_called() -> None:
    with pytest.raises(DamagedError, match=r"os\.system"):
        decode({"$": "os.system", "v": "true"})
