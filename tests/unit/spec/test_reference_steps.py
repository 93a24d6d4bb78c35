"""A parameter can name one checkpoint of another run."""

from __future__ import annotations

from typing import Any

import pytest

from hostler.errors import UsageError
from hostler.spec.inputs import Input, all_inputs, inputs_of
from hostler.spec.job import Job
from hostler.spec.reference import is_reference, read_step, split_step
from hostler.spec.space import parse


@pytest.mark.parametrize(
    ("word", "step"),
    [(150_000, 150_000), ("150000", 150_000), ("best", "best"), ("last", "last"), (0, 0)]
    + [(word, None) for word in (-1, True, 1.5, "", "first", "-3", "٣", None, "9" * 30)],
)
def test_step_is_a_number_best_or_last(word: Any, step: Any) -> None:
    assert read_step(word) == step


def test_reference_may_have_a_step_and_only_done() -> None:
    for step in (150_000, "best", "last"):
        assert is_reference({"run": "a/3", "step": step})
        assert is_reference({"best-of": "a", "step": step, "file": "w.pt", "only": "done"})
    assert not is_reference({"run": "a", "only": "failed"})
    assert not is_reference({"step": 3})


def test_inputs_carry_the_step_of_a_file() -> None:
    space = parse({"init": {"run": "a", "step": 150_000}, "other": [{"run": "b@best"}, {"best-of": "c"}]})
    assert space.count == 2
    [first, second] = inputs_of(space.params(0))
    assert first == Input("init", run="a", step=150_000) and second == Input("other", run="b@best")
    assert first.shown == "a@150000"
    job = Job(name="x", command=("true",), runs=(space.params(0),), init={"run": "d", "step": "last"})
    assert {(one.run, one.step) for one in all_inputs(job)} == {
        ("a", 150_000),
        ("b@best", None),
        ("d", "last"),
    }


@pytest.mark.parametrize("where", [lambda one: one, lambda one: [one, {"run": "b"}]])
def test_step_that_is_none_is_refused_with_what_to_write(where: Any) -> None:
    with pytest.raises(UsageError, match="step: 'newest' is not a step of a run") as error:
        parse({"init": where({"run": "a", "step": "newest"})})
    assert error.value.hint == "a number, best or last"


def test_nested_parameters_named_run_and_step_stay_parameters() -> None:
    assert parse({"logging": {"run": 5, "step": 100}}).params(0) == {"logging": {"run": 5, "step": 100}}


def test_word_is_split_at_its_step() -> None:
    assert split_step("grid/3@150000") == ("grid/3", 150_000)
    assert split_step("grid/3@best") == ("grid/3", "best")
    for word in ("grid", "grid@x", "@3", "user@host"):
        assert split_step(word) == (word, None)
