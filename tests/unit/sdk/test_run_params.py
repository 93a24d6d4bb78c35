from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import UsageError
from hostler.sdk.params import collect, differences, kept, refuse_changed


@dataclass
class Model:
    width: int = 3


@dataclass
class Config:
    lr: float = 0.1
    model: Model = field(default_factory=Model)


class Plain:
    def __init__(self) -> None:
        self.lr = 0.1
        self._private = 1


@pytest.mark.parametrize(
    "given", [{"lr": 0.1}, argparse.Namespace(lr=0.1), Config(), Plain()], ids=lambda v: type(v).__name__
)
def test_parameters_are_read_as_attributes_and_as_items(given: Any) -> None:
    params = collect(given)
    assert params.lr == 0.1 and params["lr"] == 0.1 and dict(params)["lr"] == 0.1
    assert "_private" not in params


def test_nested_tables_are_read_the_same_way() -> None:
    params = collect({"model": {"width": 64}, "lr": 1})
    assert params.model.width == 64 and params["model"]["width"] == 64
    assert kept(params) == {"model.width": 64, "lr": 1}
    assert kept(collect(Config())) == {"lr": 0.1, "model": {"width": 3}}


def test_an_unknown_parameter_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(AttributeError, match="did you mean 'learning_rate'"):
        _ = collect({"learning_rate": 1}).learnign_rate
    with pytest.raises(KeyError, match="known: lr"):
        _ = collect({"lr": 1})["width"]


@pytest.mark.parametrize("given", ["lr=1", 3, [1], Config])
def test_what_has_no_names_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="params cannot be"):
        collect(given)


def test_what_a_worker_handed_over_wins_and_fills_gaps() -> None:
    params = collect({"lr": 0.1, "batch_size": 8}, {"lr": 0.3, "batch-size": 16, "seed": 1})
    assert (params.lr, params.batch_size, params.seed) == (0.3, 16, 1)


def test_equal_value_keeps_the_scripts_own_type() -> None:
    params = collect({"out": Path("/x"), "n": 1.0}, {"out": "/x", "n": 1})
    assert params.out == Path("/x") and isinstance(params.out, Path)
    assert isinstance(params.n, float)


def test_values_are_kept_as_json_holds_them() -> None:
    import numpy as np

    given = {"p": Path("/x"), "t": (1, 2), "s": {3, 1}, "n": np.float64(0.5), "f": math.sin, "none": None}
    assert kept(given) == {"p": "/x", "t": [1, 2], "s": [1, 3], "n": 0.5, "f": "math.sin", "none": None}


def test_object_without_a_repr_is_the_same_parameter_every_time() -> None:
    class Thing: ...

    assert kept({"x": Thing()}) == kept({"x": Thing()})


def test_a_set_of_anything_is_kept_in_one_order() -> None:
    assert kept({"x": {"b", None, 1}}) == kept({"x": {1, "b", None}}) == {"x": ["b", 1, None]}
    assert kept({"x": {10, 9.5}}) == {"x": [9.5, 10]}


def test_only_what_differs_differs() -> None:
    nan = math.nan
    assert differences({"a": 1, "b": (1,), "c": nan}, {"a": 1.0, "b": [1], "c": nan}) == {}
    assert differences({"a": 1, "b": 2}, {"a": 2, "c": 3}) == {
        "a": (1, 2),
        "b": (2, "(none)"),
        "c": ("(none)", 3),
    }


def test_changed_parameters_are_refused_by_name_with_the_choices() -> None:
    with pytest.raises(UsageError) as error:
        refuse_changed({"lr": 0.1, "epochs": 3}, {"lr": 0.2, "epochs": 3}, False, "run-1")
    assert "lr was 0.1, is 0.2" in str(error.value)
    assert 'resume="never"' in str(error.value) and "allow_changed=['lr']" in str(error.value)
    refuse_changed({"lr": 0.1}, {"lr": 0.2}, True, "run-1")
    refuse_changed({"lr": 0.1}, {"lr": 0.2}, ("lr",), "run-1")
    with pytest.raises(UsageError, match="lr was"):
        refuse_changed({"lr": 0.1}, {"lr": 0.2}, ("epochs",), "run-1")


def _itself(kind: str) -> Any:
    table: dict[str, Any] = {}
    rows: list[Any] = [table]
    model = Model()
    table["inner"] = {"table": table, "list": rows, "dataclass": model}[kind]
    rows.append(rows)
    model.width = rows  # type: ignore[assignment]
    return table


@pytest.mark.parametrize("kind", ["table", "list", "dataclass"])
def test_a_parameter_that_holds_itself_is_refused_by_name(kind: str) -> None:
    with pytest.raises(UsageError, match="parameter 'odd' contains itself"):
        collect({"lr": 0.1, "odd": _itself(kind)}, {"odd": 1})


def test_arrays_are_kept_whole_and_large_ones_by_a_digest(np: Any) -> None:
    small, large, other = np.arange(3), np.zeros((100, 100)), np.zeros((100, 100))
    other[50, 50] = 1
    found = kept({"small": small, "scalar": np.float32(0.5), "large": large})
    assert found["small"] == [0, 1, 2] and found["scalar"] == 0.5
    assert found["large"].startswith("ndarray of shape (100, 100), crc32 ")
    assert differences(found, kept({"small": small, "scalar": 0.5, "large": large.copy()})) == {}
    assert list(differences(found, kept({"small": small, "scalar": 0.5, "large": other}))) == ["large"]
