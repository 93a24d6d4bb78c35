from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hostler.errors import SpecError
from hostler.spec.files.yaml12 import load


def value(text: str) -> Any:
    return load(text, "f.yaml").value


def test_words_that_yaml_1_1_would_change_stay_text() -> None:
    text = "[on, off, yes, no, 12:30, 2024-01-31, 1_000, NO]"
    assert value(text) == ["on", "off", "yes", "no", "12:30", "2024-01-31", "1_000", "NO"]


def test_numbers_and_booleans_of_the_core_schema() -> None:
    assert value("[1e-3, 0o17, 0x1f, .inf, true, False, ~, 1.]") == [
        0.001,
        15,
        31,
        math.inf,
        True,
        False,
        None,
        1.0,
    ]
    assert value("{a: , b: '1', c: \"true\"}") == {"a": None, "b": "1", "c": "true"}


def test_keys_are_always_text() -> None:
    assert value("{on: 1, 1: 2, true: 3, null: 4}") == {"on": 1, "1": 2, "true": 3, "null": 4}


def test_every_key_and_item_has_its_line() -> None:
    document = load("a: 1\nb:\n  c: 2\n  d:\n    - x\n    - e: 5\n", "f.yaml")
    assert document.lines == {
        (): 1,
        ("a",): 1,
        ("b",): 2,
        ("b", "c"): 3,
        ("b", "d"): 4,
        ("b", "d", 0): 5,
        ("b", "d", 1): 6,
        ("b", "d", 1, "e"): 6,
    }
    assert document.where(("b", "d", 7, "z")) == "f.yaml:4"


def test_a_key_given_twice_names_both_lines() -> None:
    with pytest.raises(SpecError, match="'a' is given twice, first on line 2") as caught:
        load("x:\n  a: 1\n  b: 2\n  a: 3\n", "f.yaml")
    assert caught.value.where == "f.yaml:4"


def test_anchors_and_merges_work_and_own_keys_win() -> None:
    text = (
        "base: &b {a: 1.10, n: {x: 1}}\nother: &o {a: 5, z: 6}\nmine:\n  n: own\n  <<: [*b, *o]\nagain: *b\n"
    )
    document = load(text, "f.yaml")
    assert document.value["mine"] == {"a": 1.1, "n": "own", "z": 6}
    assert document.value["again"] == {"a": 1.1, "n": {"x": 1}}
    assert document.lines[("mine", "n")] == 4
    assert ("mine", "n", "x") not in document.lines
    assert document.texts[("mine", "a")] == "1.10"


def test_how_a_number_was_written_is_kept() -> None:
    assert load("a: 1.10\nb: [007]\nc: '3'\nd: x", "f.yaml").texts == {("a",): "1.10", ("b", 0): "007"}


def test_aliases_are_copies() -> None:
    found = value("a: &x [1]\nb: *x\n")
    found["a"].append(2)
    assert found["b"] == [1]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1\nc: 2\n", 3),
        ("a:\n\t- 1", 2),
        ("a: 1\nb: \x01", 2),
        ("a: 1\n---\nb: 2", 2),
        ("a: *nobody", 1),
        ("a: '\ud800'", 1),
        ("a: b: c", 1),
        ("a: 1\nb: !mine 3", 2),
        ("a: !!int abc", 1),
        ("a: !!binary aGk=", 1),
        ("a: !!timestamp 2024-01-01", 1),
        ("? [1, 2]\n: 3", 1),
        ("a: 1\n<<: 3", 2),
        ("a: &a [*a]", 1),
        ("[" * 5000, 1),
        ("- " * 300 + "1", 1),
    ],
)
def test_what_is_wrong_is_a_spec_error_with_its_line(text: str, line: int) -> None:
    with pytest.raises(SpecError) as caught:
        load(text, "my file.yaml")
    assert caught.value.where == f"my file.yaml:{line}"
    assert str(caught.value).startswith(f"my file.yaml:{line}: ")


def test_aliases_that_multiply_are_refused_quickly() -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    with pytest.raises(SpecError, match="multiply"):
        load(text, "f.yaml")


def test_explicit_core_tags_are_obeyed() -> None:
    assert value("[!!str 12, !!float 3, !!int '4', !!bool 'true']") == ["12", 3.0, 4, True]


def test_an_empty_file_is_nothing() -> None:
    assert value("") is None
    assert value("# only a comment\n") is None


plain = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(values)
def test_json_files_are_read_as_json(tree: Any) -> None:
    document = load(json.dumps(tree, indent=2), "f.json")
    assert document.value == tree


@given(st.dictionaries(st.text(), values, min_size=1))
def test_every_json_key_has_its_line(tree: dict[str, Any]) -> None:
    text = json.dumps(tree, indent=1)
    lines = text.split("\n")
    found = load(text, "f.json").lines
    for path, line in found.items():
        if path and isinstance(path[-1], str):
            assert json.dumps(path[-1]) + ": " in lines[line - 1]
    assert {path[0] for path in found if path} == set(tree)


@given(values)
def test_what_pyyaml_writes_quoted_is_read_back(tree: Any) -> None:
    text = yaml.safe_dump(tree, default_style='"', allow_unicode=False)
    assert value(text) == tree


def test_json_mistakes_have_lines() -> None:
    with pytest.raises(SpecError, match="not JSON") as caught:
        load('{"a": 1,\n "b": }', "f.json")
    assert caught.value.where == "f.json:2"
    with pytest.raises(SpecError, match="'a' is given twice, first on line 1") as caught:
        load('{"a": {"b": [1, {"a": 2}]},\n\t"a": 3}', "f.json")
    assert caught.value.where == "f.json:2"
    with pytest.raises(SpecError, match="a number has thousands of digits"):
        load('{"a": ' + 5000 * "9" + "}", "f.json")
