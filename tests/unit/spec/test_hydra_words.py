"""Overrides are read back by Hydra itself as the values they were made of."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hydra.core.override_parser import overrides_parser as hydra_core
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.spec.argv import build
from hostler.spec.hydra import value, words
from hostler.spec.job import Job

PLACES = {"output_dir": "/tmp/a place/out"}
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)


def read_back(made: str) -> Any:
    parser = hydra_core.OverridesParser.create()
    return parser.parse_override(f"key={made}").value()


def plain(found: Any) -> Any:
    return getattr(found, "text", found) if type(found).__name__ == "QuotedString" else found


@settings(max_examples=300, deadline=None)
@given(SCALARS)
def test_a_value_comes_back_as_it_was(given: Any) -> None:
    found = plain(read_back(value(given)))
    assert found == given and type(found) is type(given)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a b",
        "it's",
        'say "x"',
        "a,b",
        "[x]",
        "{y}",
        "1",
        "true",
        "null",
        "INF",
        "nan",
        "a=b",
        "\\",
        "a\\'",
        "$x",
        "${x}",
    ],
)
def test_text_that_means_something_to_hydra_stays_text(text: str) -> None:
    assert plain(read_back(value(text))) == text


def test_lists_and_tables_come_back() -> None:
    made = read_back(value({"a": [1, "two words", None], "b": True}))
    assert {key: [plain(x) for x in v] if isinstance(v, list) else v for key, v in made.items()} == {
        "a": [1, "two words", None],
        "b": True,
    }


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_infinities_come_back(number: float) -> None:
    assert read_back(value(number)) == number


def test_the_run_folder_is_the_output_folder() -> None:
    job = Job(name="j", command=("python", "train.py"), style="hydra")
    made = build(job, {"lr": 0.1, "model": {"width": 64}}, PLACES, resuming=False)
    assert made.argv == (
        "python",
        "train.py",
        "lr=0.1",
        "model.width=64",
        "hydra.run.dir='/tmp/a place/out'",
    )


def test_a_run_folder_of_the_persons_own_wins() -> None:
    assert words({"hydra.run.dir": "mine"}, PLACES, ()) == ["hydra.run.dir=mine"]
    assert words({}, PLACES, ("python", "t.py", "hydra.run.dir=mine")) == []
