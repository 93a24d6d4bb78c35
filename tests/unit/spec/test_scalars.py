from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.spec.scalars import kind, parse_value, scalar, text

TEXT = ["on", "off", "yes", "no", "y", "N", "On", "12:30", "1:20:30", "2024-01-31", "2024-01-31T12:00:00Z"]
TEXT += [
    "1_000",
    "0b11",
    "1e",
    "e3",
    "--5",
    "tRUE",
    "nil",
    "None",
    "nan",
    "inf",
    "1.2.3",
    "0o8",
    "0xg",
    "-0x1f",
    "+",
]


@pytest.mark.parametrize("word", TEXT)
def test_what_the_core_schema_does_not_name_stays_text(word: str) -> None:
    assert scalar(word) == word
    assert kind(word) == "str"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e-3", 1e-3),
        ("1E+3", 1000.0),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.5", -0.5),
        ("+7", 7),
        ("007", 7),
        ("-12", -12),
        ("0o17", 15),
        ("0x1F", 31),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("+.Inf", math.inf),
        ("true", True),
        ("False", False),
        ("TRUE", True),
        ("null", None),
        ("~", None),
        ("", None),
    ],
)
def test_the_core_schema_word_by_word(word: str, value: object) -> None:
    found = scalar(word)
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_number() -> None:
    assert math.isnan(scalar(".NaN"))  # type: ignore[arg-type]


def test_a_number_too_long_for_python_stays_text() -> None:
    assert scalar("9" * 5000) == "9" * 5000


def test_an_empty_word_on_a_command_line_is_empty_text() -> None:
    assert parse_value("") == ""
    assert parse_value("null") is None


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.booleans())
def test_what_is_written_is_read_back(value: object) -> None:
    assert scalar(text(value)) == value
    assert type(scalar(text(value))) is type(value)


@given(st.text())
def test_any_word_has_a_value_of_its_kind(word: str) -> None:
    names = {"null": type(None), "bool": bool, "int": int, "float": float, "str": str}
    assert type(scalar(word)) is names[kind(word)]


def test_lists_and_tables_are_written_as_json() -> None:
    assert text([1, 2.5, "a b", None, True]) == '[1,2.5,"a b",null,true]'
    assert text({"a": {"b": (1, 2)}}) == '{"a":{"b":[1,2]}}'
