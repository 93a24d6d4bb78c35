from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.spec.argv import params_of, with_params

RUN = ("python", "train.py")


@pytest.mark.parametrize(
    ("args", "params"),
    [
        (["--lr", "0.1"], {"lr": 0.1}),
        (["--lr=1e-3", "--name="], {"lr": 0.001, "name": ""}),
        (["lr=0.1", "model.width=64", "+new=on"], {"lr": 0.1, "model.width": 64, "new": "on"}),
        (["--amp", "--lr", "3"], {"amp": True, "lr": 3}),
        (["--amp"], {"amp": True}),
        (["--layers", "1", "2", "3.5", "-x"], {"layers": [1, 2, 3.5]}),
        (["--lr", "0.1", "input.csv"], {"lr": 0.1}),
        (["--min", "-5", "--max", "-.5"], {"min": -5, "max": -0.5}),
        (["--lr", "1", "--lr", "2"], {"lr": 2}),
        (["--when", "12:30", "--date", "2024-01-01"], {"when": "12:30", "date": "2024-01-01"}),
        (["--a=b=c", "-v", "file", "--"], {"a": "b=c"}),
        (["https://h/x?a=b", "/p/a=b"], {}),
        (["--text", "a b\n;'\""], {"text": "a b\n;'\""}),
        (["--path", ""], {"path": ""}),
    ],
)
def test_arguments_are_read_as_parameters(args: list[str], params: dict[str, Any]) -> None:
    assert params_of((*RUN, *args)) == params


def test_a_launchers_own_options_are_not_parameters() -> None:
    assert params_of(("torchrun", "--nproc-per-node", "4", "train.py", "--lr", "1")) == {"lr": 1}
    assert params_of(("./tool", "--lr", "1")) == {"lr": 1}
    assert params_of(()) == {}


@pytest.mark.parametrize(
    ("args", "params", "changed"),
    [
        (["--lr", "0.1", "in.csv"], {"lr": 0.01}, ["--lr", "0.01", "in.csv"]),
        (["--lr=0.1", "--b", "2"], {"lr": 0.01}, ["--lr=0.01", "--b", "2"]),
        (["lr=0.1", "x=1"], {"lr": 0.01, "new": 3}, ["lr=0.01", "x=1", "new=3"]),
        (["a", "--b", "2"], {"lr": 0.01}, ["a", "--b", "2", "--lr", "0.01"]),
        (["--layers", "1", "2"], {"layers": [3, 4, 5]}, ["--layers", "3", "4", "5"]),
        (["--layers", "1", "2"], {"layers": 7}, ["--layers", "7"]),
        (["--amp", "--b", "2"], {"amp": False}, ["--b", "2"]),
        (["--amp", "--b", "2"], {"amp": True}, ["--amp", "--b", "2"]),
        (["--b", "2", "c"], {"b": None, "z": None}, ["c"]),
        (["--learning-rate", "1"], {"learning_rate": 2}, ["--learning-rate", "2"]),
        (["m.w=1"], {"m": {"w": 2}}, ["m.w=2"]),
        (["--x", "1"], {"x": "a b; c"}, ["--x", "a b; c"]),
        (["--x", "1"], {"x": "-a"}, ["--x=-a"]),
        (["+x=1"], {"x": 2}, ["+x=2"]),
        ([], {}, []),
    ],
)
def test_parameters_are_changed_where_they_stand(
    args: list[str], params: dict[str, Any], changed: list[str]
) -> None:
    assert with_params((*RUN, *args), params) == (*RUN, *changed)


words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
args = st.lists(
    words | st.sampled_from(["--lr", "--lr=1", "lr=2", "-x", "0.5", "--", "--a", "3"]), max_size=8
)


@given(args)
def test_changing_nothing_changes_nothing(given_args: list[str]) -> None:
    assert with_params((*RUN, *given_args), {}) == (*RUN, *given_args)


@given(args, st.floats(0, 1) | st.integers(0, 9) | st.sampled_from(["a", "a b", "-z", "x.py"]))
def test_a_changed_parameter_is_read_back_and_the_others_stay(given_args: list[str], value: Any) -> None:
    before = (*RUN, *given_args)
    after = params_of(with_params(before, {"zeta": value}))
    assert after["zeta"] == value
    assert {k: v for k, v in after.items() if k != "zeta"} == params_of(before)
