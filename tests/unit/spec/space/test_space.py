from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.errors import NewerFormatError, SpecError, UsageError
from hostler.spec.files.yaml12 import load
from hostler.spec.params import nest
from hostler.spec.space import Space, from_json, parse, to_json

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
letters = st.sampled_from("abcdefgh")


def tables(names: str, deep: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    """`parameters` of constants, lists and LISTs; keys of one table never clash with those around it."""
    own, rest = names[:3], names[3:]
    leaves = st.one_of(
        scalars.filter(lambda value: not isinstance(value, dict)), st.lists(scalars, min_size=1, max_size=3)
    )
    flat = st.dictionaries(st.sampled_from(own), leaves, max_size=3)
    if not deep:
        return flat
    branches = st.lists(tables(rest, deep - 1), min_size=1, max_size=3)
    return st.builds(
        lambda table, listed: {**table, **({f"LIST {deep}": listed} if listed else {})},
        flat,
        st.none() | branches,
    )


SPACES = tables("abcdefghi").filter(bool)


def naive(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """The grid, by the words of its definition."""
    axes = []
    for key, value in parameters.items():
        if key.startswith("LIST"):
            axes.append(once([cell for branch in value for cell in naive(branch)]))
        else:
            values = value if isinstance(value, list) else [value]
            axes.append(once([{key: one} for one in values]))
    return [{k: v for part in combo for k, v in part.items()} for combo in itertools.product(*axes)]


def once(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: set[str] = set()
    return [c for c in cells if not (text(c) in seen or seen.add(text(c)))]  # type: ignore[func-returns-value]


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(SPACES, st.integers(1, 3))
def test_a_grid_is_the_product_of_its_axes_and_lists(parameters: dict[str, Any], repeat: int) -> None:
    space = parse(parameters, repeat=repeat)
    assert list(map(text, space.cells())) == list(map(text, naive(parameters) * repeat))


@given(SPACES, st.sampled_from(["grid", "random"]), st.integers(1, 3), st.integers(0, 5))
def test_a_cell_is_found_without_the_others(
    parameters: dict[str, Any], method: str, repeat: int, seed: int
) -> None:
    space = parse(parameters, method=method, repeat=repeat, seed=seed)
    cells = list(space.cells())
    assert len(cells) == space.count
    order = list(range(space.count))
    random.Random(seed).shuffle(order)
    assert all(text(space.params(index)) == text(cells[index]) for index in order)


@given(SPACES)
def test_random_search_of_a_finite_space_runs_each_configuration_once(parameters: dict[str, Any]) -> None:
    space = parse(parameters, method="random", seed=3)
    assert sorted(map(text, space.cells())) == sorted(map(text, naive(parameters)))


@given(SPACES, st.sampled_from(["grid", "random"]), st.integers(1, 9), st.integers(0, 9))
def test_a_space_comes_back_from_json(parameters: dict[str, Any], method: str, runs: int, seed: int) -> None:
    space = parse(parameters, method=method, runs=runs, seed=seed)
    again = from_json(json.loads(json.dumps(to_json(space))))
    assert again.count == space.count <= runs
    assert list(map(text, again.cells())) == list(map(text, space.cells()))
    assert to_json(again) == to_json(space)


ends = st.floats(1e-300, 1e300) | st.integers(1, 10**30)


@given(ends, ends, st.booleans(), st.integers())
def test_draws_stay_inside_their_range(one: float, other: float, log: bool, seed: int) -> None:
    low, high = min(one, other), max(one, other)
    space = parse({"x": {"min": low, "max": high, "log": log}}, method="random", runs=20, seed=seed)
    assert all(float(low) <= cell["x"] <= float(high) for cell in space.cells())


@given(st.integers(1, 10**40), st.integers(0, 10**40), st.booleans(), st.integers(1, 1000))
def test_whole_draws_stay_inside_their_range_and_whole(low: int, more: int, log: bool, step: int) -> None:
    form = {"min": low, "max": low + more, "int": True, **({"log": True} if log else {"step": step})}
    space = parse({"x": form, "y": {"uniform": [0, 1]}}, method="random", runs=20)
    for cell in space.cells():
        assert isinstance(cell["x"], int)
        assert low <= cell["x"] <= low + more
        assert log or (cell["x"] - low) % step == 0


def test_draws_are_the_same_for_ever() -> None:
    """Golden: another Python, machine or version of hostler must not change what a sweep's runs are."""
    space = parse(
        {
            "lr": {"log_uniform": [1e-5, 1e-1]},
            "drop": {"uniform": [0, 0.5]},
            "layers": {"min": 2, "max": 8, "int": True},
            "width": {"min": 16, "max": 4096, "int": True, "log": True},
            "noise": {"normal": [0, 1]},
            "model": ["a", "b", "c"],
        },
        method="random",
        runs=3,
        seed=7,
    )
    assert list(space.cells()) == GOLDEN


def test_draw_is_independent_of_other_parameters_and_count() -> None:
    few = parse({"lr": {"uniform": [0, 1]}}, method="random", runs=3)
    more = parse({"a": [1, 2], "lr": {"uniform": [0, 1]}}, method="random", runs=300)
    assert [few.params(n)["lr"] for n in range(3)] == [more.params(n)["lr"] for n in range(3)]


def test_another_seed_draws_others() -> None:
    one, other = (parse({"x": {"uniform": [0, 1]}}, method="random", runs=9, seed=s) for s in (0, 1))
    assert not set(map(text, one.cells())) & set(map(text, other.cells()))


def test_random_search_goes_over_the_whole_range() -> None:
    space = parse({"x": {"min": 1e-6, "max": 1.0, "log": True}}, method="random", runs=600)
    decades = [0] * 6
    for cell in space.cells():
        decades[min(5, sum(cell["x"] >= 10.0**-k for k in range(1, 6)))] += 1
    assert min(decades) > 60


def test_more_repeats_add_runs_at_the_end() -> None:
    two, three = parse({"lr": [1, 2]}, repeat=2), parse({"lr": [1, 2]}, repeat=3)
    assert list(three.cells())[:4] == list(two.cells())
    assert [three.repeat_of(n) for n in range(6)] == [0, 0, 1, 1, 2, 2]


def test_a_repeat_changes_no_parameter_unless_one_is_named() -> None:
    assert list(parse({"lr": [1]}, repeat=2).cells()) == [{"lr": 1}, {"lr": 1}]
    assert [c["seed"] for c in parse({"lr": 1}, repeat={"seed": 3}).cells()] == [0, 1, 2]
    assert [c["seed"] for c in parse({"lr": 1}, repeat={"seed": [5, 9]}).cells()] == [5, 9]
    assert [c["seed"] for c in parse({"lr": 1, "seed": 40}, repeat=2).cells()] == [40, 41]
    assert [c["seed"] for c in parse({"seed": [1, 2]}, repeat=2).cells()] == [1, 2, 1, 2]
    assert list(parse({"a.b": 1}, repeat={"a.seed": 2}).cells())[1] == {"a": {"b": 1, "seed": 1}}


def test_budget_takes_the_first_cells_of_a_grid() -> None:
    space = parse({"a": [1, 2, 3], "b": [1, 2]}, runs=4)
    assert list(space.cells()) == naive({"a": [1, 2, 3], "b": [1, 2]})[:4]
    assert space.notes == ("the budget covers the first 4 of 6",)
    assert parse({"a": list(range(10**4)), "b": list(range(10**4))}, runs=5, repeat=2).count == 4


def test_a_random_search_larger_than_its_space_runs_nothing_twice() -> None:
    space = parse({"a": [1, 2, 3]}, method="random", runs=50)
    assert space.count == 3
    assert space.notes == ("only 3 different configurations: none is run twice",)


def test_sections_are_spaces_of_their_own_over_the_same_parameters() -> None:
    space = parse({"lr": [1, 2], "epochs": 3}, sections=[{}, {"lr": [7, 8, 9]}], repeat=2)
    lrs = [cell["lr"] for cell in space.cells()]
    assert lrs == [1, 2, 7, 8, 9] * 2
    assert [space.section_of(n) for n in range(10)] == [1, 1, 2, 2, 2] * 2
    assert all(cell["epochs"] == 3 for cell in space.cells())
    assert parse({"lr": [1]}).section_of(0) == 0


def test_sections_draw_differently() -> None:
    space = parse({"x": {"uniform": [0, 1]}}, method="random", runs=10, sections=[{}, {}])
    assert len(set(map(text, space.cells()))) == 10


def test_what_varies_is_known() -> None:
    space = parse({"lr": [1, 2], "epochs": 3, "LIST o": [{"optim": "a"}, {"optim": "b", "m": 1}]})
    assert space.keys == ("lr", "epochs", "m", "optim")
    assert space.varying == ("lr", "m", "optim")


def test_a_method_that_learns_is_asked_by_dimension() -> None:
    space = parse(
        {
            "lr": {"min": 1e-5, "max": 1e-1, "log": True},
            "layers": {"min": 2, "max": 8, "int": True},
            "width": {"start": 64, "factor": 2, "count": 4},
            "model": ["resnet18", "resnet50"],
            "epochs": 30,
            "LIST optimizer": [{"optim": "sgd", "momentum": [0, 0.9]}, {"optim": "adam"}],
            "nesterov": {"values": [True, False], "when": {"optim": "sgd"}},
            "ZIP": {"a": [1, 2], "b": [3, 4]},
            "steps": {"expr": "epochs * layers"},
        },
        method="tpe",
        runs=200,
    )
    assert space.learns
    assert space.count == 0
    named = {d.name: d for d in space.dimensions()}
    assert [d.kind for d in named.values()] == [
        *("float", "int", "choice", "choice", "choice", "choice", "choice", "choice")
    ]
    assert (named["lr"].low, named["lr"].high, named["lr"].log) == (1e-5, 1e-1, True)
    chosen, params = space.ask(lambda d: d.choices[-1] if d.kind == "choice" else d.high)
    assert "nesterov" not in chosen
    assert "LIST optimizer/0/momentum" not in chosen
    assert params == {
        "lr": 0.1,
        "layers": 8,
        "width": 512,
        "model": "resnet50",
        "epochs": 30,
        "optim": "adam",
        "a": 2,
        "b": 4,
        "steps": 240,
    }
    assert space.fill(json.loads(json.dumps(chosen))) == params
    first, params = space.ask(lambda d: d.choices[0] if d.kind == "choice" else d.low)
    assert params["nesterov"] is True
    assert params["momentum"] == 0
    assert set(first) == set(named)


def test_there_is_no_run_outside() -> None:
    with pytest.raises(UsageError, match="run 2 does not exist: the space has 2"):
        parse({"a": [1, 2]}).params(2)


def test_a_newer_space_is_left_alone() -> None:
    with pytest.raises(NewerFormatError):
        from_json({"format": 99, "parameters": {"a": 1}})


def test_dots_and_tables_are_the_same_nested_parameters() -> None:
    nested: Space = parse({"model": {"width": [1, 2], "act": "relu"}, "lr": 1})
    assert list(nested.cells()) == list(parse({"model.width": [1, 2], "model.act": "relu", "lr": 1}).cells())
    assert nested.params(1) == nest({"model.width": 2, "model.act": "relu", "lr": 1})
    inside = parse({"model": {"LIST size": [{"width": 1}, {"depth": [2, 3]}]}})
    assert list(inside.cells()) == [{"model": {"width": 1}}, {"model": {"depth": 2}}, {"model": {"depth": 3}}]


@pytest.mark.parametrize(
    ("parameters", "options", "said"),
    [
        ({}, {}, "parameters: nothing to vary"),
        ({"lr": []}, {}, "parameters.lr: an empty list"),
        ({"lr": {"values": []}}, {}, "parameters.lr.values: an empty list"),
        ({"LIST x": []}, {}, r"parameters.LIST x: \[\] is not a list of tables"),
        ({"LIST x": [1]}, {}, r"parameters.LIST x\[0\]: 1 is not a table"),
        ({"lr": {"min": 0, "max": 1}}, {}, "parameters.lr: a grid cannot go over a continuous range"),
        ({"LIST o": [{"lr": {"uniform": [0, 1]}}]}, {}, r"LIST o\[0\].lr: a grid cannot"),
        ({k: list(range(10**4)) for k in "abc"}, {}, r"1,000,000,000,000 runs.*budget.*method: random"),
        ({"lr": {"uniform": [0, 1]}}, {"method": "random"}, "budget.runs: random search needs a number"),
        ({"lr": {"normal": [0, 1]}}, {"method": "tpe"}, "tpe searches ranges and choices"),
        ({"lr": 1}, {"method": "tpe"}, "nothing for tpe to search"),
        ({"lr": [1, 2]}, {"repeat": 0}, "repeat: 0 is not a number of repeats"),
        ({"lr": [1, 2]}, {"repeat": {"a": 1, "b": 2}}, "is not a number of repeats"),
        ({"s": 1, "lr": [1, 2]}, {"repeat": {"s": 3}}, "repeat.s: s is among the parameters too"),
        ({"s.t": [1, 2]}, {"repeat": {"s": 3}}, "repeat.s: s.t is among the parameters too"),
        ({"a": [1, 2]}, {"method": "tpe", "sections": [{}]}, "sections: are for grid and random"),
        ({"lr": [1, 2]}, {"repeat": 5, "runs": 4}, "4 runs cannot hold 5 repeats"),
        ({"lr": [1, 2]}, {"runs": 0}, "budget.runs: 0 is not a number of runs"),
        ({"lr": object()}, {}, "a value of type object cannot be kept"),
        ({"lr": [1]}, {"sections": [{"a": []}]}, r"sections\[0\].a: an empty list"),
        ({"lr": []}, {"sections": [{"a": 1}]}, "parameters.lr: an empty list"),
        ({"a": [1, 2], "LIST": [{"a": 1}]}, {}, r"LIST: a is given twice \(also as parameters.a\)"),
        ({"a": {"b": 1}, "a.b": 2}, {}, "a.b is given twice"),
        ({"a": 1, "a.b": 2}, {}, "a is a value here and a table of values elsewhere"),
        ({"m": {}}, {}, "parameters.m: an empty table"),
    ],
)
def test_what_cannot_be_is_refused_at_its_key(
    parameters: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        parse(parameters, **options)


def test_fault_names_file_and_line_where_known() -> None:
    with pytest.raises(SpecError) as caught:
        parse({"a": 1, "lr": {"min": 3, "max": 1}}, where=lambda path: f"sweep.yaml:{len(path)}")
    assert caught.value.message == "sweep.yaml:2: parameters.lr: 3 is above 1"


GOLDEN: list[dict[str, Any]] = [
    {
        "lr": 0.003678538535427383,
        "drop": 0.4603846946648593,
        "layers": 3,
        "width": 471,
        "noise": -0.432168099742,
        "model": "a",
    },
    {
        "lr": 0.015094435178368367,
        "drop": 0.012126137792855485,
        "layers": 3,
        "width": 50,
        "noise": 0.495060855578,
        "model": "c",
    },
    {
        "lr": 6.24664229217179e-05,
        "drop": 0.4502492375265252,
        "layers": 4,
        "width": 1131,
        "noise": -1.01321425332,
        "model": "b",
    },
]


def test_what_the_documentation_shows_can_be_read() -> None:
    page = (Path(__file__).parents[4] / "docs/search-space.md").read_text()
    files = [load(block, "block.yaml").value for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    counts = [
        parse(f["parameters"], repeat=f.get("repeat", 1), sections=f.get("sections", ())).count for f in files
    ]
    assert counts == [12, 2 * 2 * 5 * 2, 1, 5]
    forms = re.findall(r"^\| (`.*?) \| ", page.partition("## Several")[0], re.MULTILINE)
    written = [form for cell in forms for form in re.findall(r"`(\{.*?\})`", cell)]
    assert len(written) == 14
    for form in written:
        found = load(f"x: {form}\nepochs: 3\nbatch: 2", "form.yaml").value
        assert parse(found, method="random", runs=3).count >= 1
