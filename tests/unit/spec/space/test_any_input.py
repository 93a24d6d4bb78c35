"""Whatever a file holds, the answer is a space or one clear error; never a crash, never a different cell."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hostler.errors import SpecError, UsageError
from hostler.spec.files.yaml12 import Document
from hostler.spec.formats.reading import as_ours
from hostler.spec.space import from_json, parse, to_json

WORDS = [
    *("a", "b", "c.d", "LIST x", "ZIP y", "seed", "min", "max", "log", "int", "step", "q", "count", "value"),
    *(
        "values",
        "uniform",
        "log_uniform",
        "normal",
        "start",
        "factor",
        "expr",
        "when",
        "best-of",
        "run",
        "file",
    ),
]
THEIRS = [
    *("parameters", "method", "metric", "program", "command", "run_cap", "early_terminate", "distribution"),
    *("iterations", "hyperparameters", "data", "job_details", "name", "goal", "type", "min_iter", "helper"),
]
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 30),
    st.sampled_from([0, 1, 2, 10**30, -(10**30), 10**400]),
    st.floats(),
    st.sampled_from(
        ["a", "b + 1", "a * 2", "range(3)", "linspace(0, 1, 3)", "a +", "", "x", "bayes", "grid"]
    ),
)


def values(words: list[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(words), inner, max_size=4)
        ),
        max_leaves=14,
    )


tables = st.dictionaries(st.sampled_from(WORDS), values(WORDS), max_size=5)


@settings(max_examples=400)
@given(tables, st.sampled_from(["grid", "random", "tpe"]), values(WORDS), st.none() | st.integers(0, 30))
@example({"a": {"min": 0, "max": 10**400}}, "random", 1, 3)
@example({"a": {"start": 1e308, "step": 1e308, "count": 3}}, "grid", 1, None)
def test_any_parameters_are_a_space_or_one_error(
    parameters: dict[str, Any], method: str, repeat: Any, runs: int | None
) -> None:
    try:
        space = parse(parameters, method=method, repeat=repeat, runs=runs)
    except SpecError:
        return
    again = from_json(json.loads(json.dumps(to_json(space))))
    assert again.count == space.count
    try:
        if space.learns:
            chosen, params = space.ask(lambda d: d.choices[-1] if d.choices else d.high)
            assert repr(again.fill(chosen)) == repr(params)
        elif space.count <= 300:
            cells = list(space.cells())
            assert [repr(again.params(n)) for n in range(space.count)] == list(map(repr, cells))
    except UsageError as error:
        assert "expr" in error.hint


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from([*THEIRS, *WORDS]), values([*THEIRS, *WORDS]), max_size=6))
def test_any_file_of_another_tool_is_read_or_one_error(value: dict[str, Any]) -> None:
    try:
        document, _ = as_ours(Document("f.json", value, {}), "stem")
        if document.value is not value:
            parse(
                document.value["parameters"],
                method=document.value["method"],
                runs=document.value.get("budget", {}).get("runs"),
                sections=document.value.get("sections", ()),
            )
    except SpecError:
        pass
