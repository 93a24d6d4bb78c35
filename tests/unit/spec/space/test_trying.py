"""What a file's space shows only when runs are made of it is said before anything starts, with its line."""

from __future__ import annotations

from typing import Any

import pytest

from hostler.errors import SpecError
from hostler.spec import space


def parse(parameters: dict[str, Any], **given: Any) -> space.Space:
    return space.parse(parameters, where=lambda path: "f.yaml:" + ".".join(map(str, path)), **given)


@pytest.mark.parametrize(
    ("opt", "value", "hint"),
    [
        (["sgd", "adam"], "adamw", "its values: sgd, adam"),
        ("sgd", "adam", "its values: sgd"),
        ({"min": 1, "max": 3, "int": True}, 4, "range"),
        ({"min": 1, "max": 3, "int": True}, "two", "range"),
        ([1, 2], True, "its values: 1, 2"),
    ],
)
def test_a_condition_that_is_never_met_is_an_error(opt: Any, value: Any, hint: str) -> None:
    table = {"opt": opt, "momentum": {"values": [0, 0.9], "when": {"opt": value}}}
    method = {"method": "random", "runs": 3} if isinstance(opt, dict) else {}
    with pytest.raises(SpecError, match=r"f.yaml:parameters.momentum.when: .*opt is never .*" + hint):
        parse(table, **method)


def test_one_value_of_several_that_never_occurs_is_an_error() -> None:
    table = {"opt": ["sgd", "adam"], "m": {"values": [0, 1], "when": {"opt": ["sgd", "rmsprop"]}}}
    with pytest.raises(SpecError, match="opt is never rmsprop"):
        parse(table)


def test_conditions_that_can_be_met_are_none() -> None:
    assert parse({"opt": ["sgd", "adam"], "m": {"values": [0, 1], "when": {"opt": "sgd"}}}).count == 3
    branches = {
        "LIST a": [{"opt": "sgd"}, {"opt": ["x", "y"]}],
        "m": {"values": [0, 1], "when": {"opt": "y"}},
    }
    assert parse(branches).count == 4
    fallback = {
        "opt": "no",
        "LIST a": [{"opt": "sgd"}, {"b": 1}],
        "m": {"values": [0, 1], "when": {"opt": "no"}},
    }
    assert parse(fallback).count == 3
    sections = [{"opt": "sgd"}, {"opt": "adam"}]
    assert (
        parse({"opt": "sgd", "m": {"values": [0, 1], "when": {"opt": "sgd"}}}, sections=sections).count == 3
    )


@pytest.mark.parametrize("given", [{}, {"method": "random", "runs": 5, "seed": 1}])
def test_an_expression_without_a_value_names_its_line(given: dict[str, Any]) -> None:
    table = {"n": [4, 3, 2, 1, 0], "share": {"expr": "1 / n"}}
    with pytest.raises(SpecError, match=r"f.yaml:parameters.share.expr: .*division by zero, at column"):
        parse(table, **given)


def test_search_expression_is_tried_at_range_ends() -> None:
    table = {"n": {"min": 0, "max": 4, "int": True}, "share": {"expr": "1 / n"}}
    with pytest.raises(SpecError, match=r"parameters.share.expr: .*division by zero"):
        parse(table, method="tpe")
    assert parse({**table, "n": {"min": 1, "max": 4, "int": True}}, method="tpe").learns


def test_workers_take_a_space_as_it_is() -> None:
    assert space.parse({"opt": ["a"], "m": {"values": [0, 1], "when": {"opt": "b"}}}).count == 1


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"opt": ["a", "b"]}, "and this space has none"),
        ({"opt": ["a", "b"], "lr": {"min": 0.1, "max": 1.0}}, "and this space has only lr"),
        (
            {
                "opt": ["a", "b"],
                "lr": {"min": 0.1, "max": 1.0},
                "m": {"min": 0.1, "max": 1.0, "when": {"opt": "a"}},
            },
            "and this space has only lr",
        ),
    ],
)
def test_cmaes_without_two_ranges_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=f"cmaes needs two or more ranges.*{said}.*tpe"):
        parse(table, method="cmaes")


def test_what_cmaes_draws_at_random_is_said() -> None:
    ranges = {"lr": {"min": 0.1, "max": 1.0}, "wd": {"min": 0.1, "max": 1.0}}
    assert parse(ranges, method="cmaes").notes == ()
    (note,) = parse(
        {
            **ranges,
            "LIST net": [{"net": "cnn", "depth": {"min": 1, "max": 3, "int": True}}, {"net": "mlp"}],
            "opt": ["a", "b"],
        },
        method="cmaes",
    ).notes
    assert note.endswith("it draws at random: LIST net, depth, opt")
