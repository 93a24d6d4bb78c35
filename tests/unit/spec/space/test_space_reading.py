from __future__ import annotations

from typing import Any

import pytest

from hostler.errors import SpecError
from hostler.spec.files.yaml12 import load
from hostler.spec.space import parse


def cells(parameters: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return list(parse(parameters, **options).cells())


def values(form: Any, **options: Any) -> list[Any]:
    return [cell["x"] for cell in cells({"x": form}, **options)]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("constant", ["constant"]),
        (None, [None]),
        ([1, 2, 1], [1, 2]),
        ([1, 1.0, True, "1"], [1, 1.0, True, "1"]),
        ([[1, 2], [3]], [[1, 2], [3]]),
        ({"value": [1, 2]}, [[1, 2]]),
        ({"value": {"min": 1}}, [{"min": 1}]),
        ({"values": ["a", "b"]}, ["a", "b"]),
        ({"min": 2, "max": 5, "int": True}, [2, 3, 4, 5]),
        ({"min": 2, "max": 8, "int": True, "step": 3}, [2, 5, 8]),
        ({"min": 0, "max": 1, "step": 0.25}, [0.0, 0.25, 0.5, 0.75, 1.0]),
        ({"min": 0.1, "max": 0.5, "step": 0.1}, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ({"start": 64, "factor": 2, "count": 4}, [64, 128, 256, 512]),
        ({"start": 0.1, "step": 0.1, "count": 3}, [0.1, 0.2, 0.3]),
        ({"start": 10, "step": -5, "count": 3}, [10, 5, 0]),
        ({"start": 1e-4, "factor": 10, "count": 4}, [1e-4, 1e-3, 1e-2, 1e-1]),
        ({"start": 2**70, "step": 1, "count": 2}, [2**70, 2**70 + 1]),
        ({"expr": "range(2, 8, 2)"}, [2, 4, 6]),
        ({"expr": "linspace(0, 1, 11)"}, [k / 10 for k in range(11)]),
        ({"expr": "logspace(-4, -1, 4)"}, [1e-4, 1e-3, 1e-2, 1e-1]),
        ({"expr": "geomspace(1e-3, 1, 4)"}, [1e-3, 1e-2, 1e-1, 1.0]),
        ({"expr": "2 ** 10"}, [1024]),
    ],
)
def test_a_form_gives_its_values_in_order(form: Any, expected: list[Any]) -> None:
    found = values(form)
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


def test_a_count_of_draws_is_an_axis_of_a_grid() -> None:
    found = values({"uniform": [0, 1], "count": 5}, seed=1)
    assert len(set(found)) == 5
    assert all(0 <= one <= 1 for one in found)
    assert found != values({"uniform": [0, 1], "count": 5}, seed=2)


def test_rounded_draws_are_multiples_inside_the_range() -> None:
    found = values({"log_uniform": [1, 1000], "q": 5}, method="random", runs=200)
    assert all(one % 5 == 0 or one == 1 for one in found)
    assert max(found) <= 1000


def test_zipped_lists_advance_together() -> None:
    parameters = {
        "ZIP size": {"width": [64, 128], "depth": [2, 4]},
        "lr": [0.1, 0.2],
        "ZIP other": {"a": [1, 2]},
    }
    found = cells(parameters)
    assert len(found) == 8
    assert {(cell["width"], cell["depth"]) for cell in found} == {(64, 2), (128, 4)}


def test_zipped_rows_count_once_unless_a_count_asks_for_them() -> None:
    assert len(cells({"ZIP": {"a": [1, 2, 1], "b": [3, 4, 3]}})) == 2
    found = cells({"ZIP": {"a": {"values": [10, 20], "count": 4}, "b": {"start": 1, "step": 1, "count": 4}}})
    assert [(cell["a"], cell["b"]) for cell in found] == [(10, 1), (20, 2), (10, 3), (20, 4)]
    assert len(cells({"ZIP": {"a": {"values": [10, 20], "count": 4}}})) == 4


def test_a_conditional_parameter_is_there_only_where_it_counts() -> None:
    found = cells(
        {
            "momentum": {"values": [0, 0.9], "when": {"optim": "sgd"}},
            "optim": ["sgd", "adam"],
            "nesterov": {"values": [True, False], "when": {"momentum": [0.9, 0.99]}},
            "lr": [1, 2],
        }
    )
    own = [{k: v for k, v in cell.items() if k != "lr"} for cell in found]
    assert own[::2] == [
        {"optim": "sgd", "momentum": 0},
        {"optim": "sgd", "momentum": 0.9, "nesterov": True},
        {"optim": "sgd", "momentum": 0.9, "nesterov": False},
        {"optim": "adam"},
    ]


def test_condition_can_name_nested_and_list_parameters() -> None:
    found = cells({"m": {"kind": ["a", "b"]}, "x": {"values": [1, 2], "when": {"m": {"kind": "a"}}}})
    assert found == [{"m": {"kind": "a"}, "x": 1}, {"m": {"kind": "a"}, "x": 2}, {"m": {"kind": "b"}}]
    found = cells({"LIST o": [{"o": "s"}, {"o": "t"}], "x": {"value": 1, "when": {"o": "t"}}})
    assert found == [{"o": "s"}, {"o": "t", "x": 1}]


def test_a_condition_on_true_is_not_met_by_one() -> None:
    assert cells({"a": [True, 1], "x": {"value": 2, "when": {"a": True}}}) == [{"a": True, "x": 2}, {"a": 1}]


def test_a_table_of_a_list_wins_over_a_constant() -> None:
    found = cells({"LIST o": [{"optim": "sgd"}, {"optim": "adam", "lr": 0.001}], "lr": 0.1})
    assert [cell["lr"] for cell in found] == [0.1, 0.001]


def test_list_tables_may_differ_nest_and_repeat() -> None:
    found = cells(
        {
            "LIST a": [
                {"x": [1, 2], "LIST b": [{"y": [3, 4]}, {"z": 5}, {"y": 4}]},
                {"x": 2, "z": 5},
                {},
            ]
        }
    )
    assert found == [
        *({"x": 1, "y": 3}, {"x": 1, "y": 4}, {"x": 1, "z": 5}),
        *({"x": 2, "y": 3}, {"x": 2, "y": 4}, {"x": 2, "z": 5}, {}),
    ]


def test_a_computed_parameter_sees_the_others_and_goes_with_them() -> None:
    found = cells(
        {
            "steps": {"expr": "epochs * 1000 // batch-size".replace("-", "_")},
            "batch-size": [10, 20],
            "epochs": 2,
            "warm": {"expr": "steps // 10"},
            "LIST o": [{"m": 3, "half": {"expr": "m * epochs / 4"}}, {"n": 1}],
            "late": {"expr": "half + 1"},
        }
    )
    assert found[0] == {
        "steps": 200,
        "batch-size": 10,
        "epochs": 2,
        "warm": 20,
        "m": 3,
        "half": 1.5,
        "late": 2.5,
    }
    assert found[3] == {"steps": 100, "batch-size": 20, "epochs": 2, "warm": 10, "n": 1}


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"min": 1}, "min without max"),
        ({"max": 1}, "max without min"),
        ({"min": "1e-5", "max": 1}, r"parameters.x.min: '1e-5' is not a number \(take the quotes away\)"),
        ({"min": True, "max": 2}, "True is not a number"),
        ({"min": 1, "max": float("inf")}, "inf is not a number"),
        ({"min": 0, "max": 1, "log": True}, "a logarithmic range cannot begin at 0"),
        ({"min": 1, "max": 2, "log": "yes"}, "x.log: 'yes' is not true or false"),
        ({"min": 0.5, "max": 2, "int": True}, "int needs ends and a step that are whole numbers"),
        ({"min": 1, "max": 2, "int": True, "factor": 2}, "x.factor: cannot be combined with min"),
        ({"min": 1, "max": 2, "lgo": True}, "x.lgo: cannot be combined with min .*did you mean 'log'"),
        ({"min": 1, "width": [1, 2]}, r"x.width: cannot be combined with min \(for a nested .* x.min\)"),
        ({"uniform": [1]}, r"\[1\] is not \[low, high\]"),
        ({"uniform": 3}, r"3 is not \[low, high\]"),
        ({"uniform": [0, 1], "log": True}, "cannot be combined with uniform"),
        ({"start": 1, "count": 3}, "start needs step or factor, and count"),
        ({"start": 1, "step": 1, "factor": 2, "count": 3}, "start needs step or factor"),
        ({"start": 1, "step": 1, "count": 0}, "x.count: 0 is not a whole number from 1"),
        ({"start": 1, "step": 1, "count": 10**9}, "is not a whole number from 1 to 1,000,000"),
        ({"start": 2, "factor": 2, "count": 10**6}, "grows beyond what a number can hold"),
        ({"start": 2.0, "factor": 2, "count": 10**4}, "grows beyond what a number can hold"),
        ({"min": 0, "max": 10**9, "int": True}, "too many values for a grid"),
        ({"values": 3}, "x.values: 3 is not a list"),
        ({"value": 1, "when": {}}, "x.when: {} is not a condition"),
        ({"value": 1, "when": {"y": 2}}, "x.when: no parameter named y"),
        ({"value": 1, "when": {"x": 1}}, "its condition depends on itself"),
        ({"when": {"x": 1}}, "`when` has a condition but no value"),
        ({"expr": "y + 1"}, "x.expr: no parameter named y"),
        ({"expr": "x + 1"}, "x → x: computed from itself"),
        ({"expr": "1 +"}, "is not an expression, at column"),
        ({"expr": "1 / 0"}, "division by zero, at column 1"),
        ({"expr": "range(x)"}, "an axis cannot depend on other parameters"),
        ({"expr": "range(0)"}, "no values"),
    ],
)
def test_a_mistake_is_named_at_its_key(form: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse({"x": form})


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"ZIP": {"a": [1], "b": [1, 2]}}, "lists of different length: a 1, b 2"),
        ({"ZIP": {"a": 1}}, "ZIP.a: not a list"),
        ({"ZIP": {}}, "ZIP: no values"),
        ({"ZIP": {"a": []}}, "ZIP: no values"),
        ({"ZIP": {"a": {"uniform": [0, 1]}}}, "ZIP.a: not a list"),
        ({"a": {"expr": "b"}, "b": {"expr": "c"}, "c": {"expr": "a"}}, "a → b → c → a: computed from itself"),
        ({"a": {"expr": "b"}, "b": [1, 2], "x": {"value": 1, "when": {"a": 1}}}, "a is computed"),
        ({"LIST": [{"a": range(1001), "b": range(1000)}]}, "1,001,000 combinations in one axis"),
    ],
)
def test_a_group_that_cannot_be_is_refused(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse(parameters)


def test_yaml_words_keep_their_meaning() -> None:
    document = load(
        "switch: [on, no, off, yes]\ntime: [12:30, 2026-11-15]\nlr: [1e-3, 1E+2]\n"
        "flag: [true, ~]\nbig: 12345678901234567890\n",
        "sweep.yaml",
    )
    space = parse(document.value)
    assert space.count == 4 * 2 * 2 * 2
    assert space.params(0) == {
        "switch": "on",
        "time": "12:30",
        "lr": 0.001,
        "flag": True,
        "big": 12345678901234567890,
    }
    assert {type(cell["time"]) for cell in space.cells()} == {str}


def test_numbers_of_other_libraries_are_read_as_numbers() -> None:
    class Number:
        shape = ()

        def item(self) -> float:
            return 0.5

    assert values([Number(), 1]) == [0.5, 1]


def test_a_parameter_may_begin_with_the_letters_of_a_group() -> None:
    assert cells({"LISTEN": [1, 2]}) == [{"LISTEN": 1}, {"LISTEN": 2}]
    assert cells({"ZIPPED": {"a": [1, 2]}}) == [{"ZIPPED": {"a": 1}}, {"ZIPPED": {"a": 2}}]
    assert cells({"LISTopt": [{"a": 1}, {"a": 2}]}) == [{"a": 1}, {"a": 2}]
