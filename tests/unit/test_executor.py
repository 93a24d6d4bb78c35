"""Calls of functions before they are submitted: arguments as parameters, and what cannot be sent."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hostler
from hostler.errors import UsageError
from hostler.executor import FunctionJob, _params
from hostler.fleet import edit
from hostler.spec import spans
from hostler.spec.job import Job
from hostler.spec.plain_data import plain
from hostler.spec.rounds import Round
from hostler.spec.space import Listed

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def train(lr: float, width: int = 1, **more: Any) -> None: ...


def unnamed(*values: int) -> None: ...


def test_arguments_become_parameters_by_name() -> None:
    assert _params(train, (0.1,), {"width": 2, "seed": 3}) == {"lr": 0.1, "width": 2, "seed": 3}


@pytest.mark.parametrize(
    ("function", "args", "says"),
    [
        (train, (), "train(): missing a required argument: 'lr'"),
        (unnamed, (1, 2), "unnamed(): values has no name to be passed by"),
        (train, (object(),), "train(): lr is a builtins.object, which is not plain data"),
        (train, ([{"net": {1: 2}}],), "train(): lr[0]['net'] has the key 1, which is not a text"),
    ],
)
def test_call_that_cannot_be_sent_says_why(function: Any, args: tuple[Any, ...], says: str) -> None:
    with pytest.raises(UsageError) as error:
        _params(function, args, {})
    assert says in error.value.message


@given(PLAIN)
def test_plain_data_stays_as_it_is(value: Any) -> None:
    assert plain(value, "x") == value


def test_tuples_become_lists_and_scalars_numbers() -> None:
    scalar = SimpleNamespace(shape=(), item=lambda: 0.5)
    assert plain({"a": (1, scalar)}, "x") == {"a": [1, 0.5]}


def test_endless_nesting_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="nested more than 50 deep"):
        plain(value, "x")


def test_number_that_nothing_reads_back_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 10000 bits"):
        plain(10**5000, "x")


def test_call_cancelled_before_it_began_ends_every_wait() -> None:
    executor: Any = SimpleNamespace(lock=Lock())
    job = FunctionJob(executor, train, {"lr": 1})
    assert job.cancel() and job.cancelled()
    assert concurrent.futures.wait([job], 0).done == {job}
    assert list(concurrent.futures.as_completed([job], 0)) == [job]


def calls(*given: dict[str, Any]) -> Job:
    one = Round(Listed(given), spans.whole(len(given)), ("python",))
    return Job(name="f", title="f", command=("python",), method="grid", rounds=(one,))


def test_added_calls_keep_runs_that_are_there() -> None:
    first = calls({"x": 1}, {"x": 2})
    found = edit.added(first, calls({"x": 2}, {"x": 3}, {"x": 3}))
    assert (list(found.kept), list(found.new), list(found.dropped)) == ([1], [2], [])
    assert [found.job.params(i) for i in range(found.job.count)] == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert found.job.run_id(0) == first.run_id(0)


def test_call_in_the_trash_is_made_again() -> None:
    found = edit.added(calls({"x": 1}), calls({"x": 1}), gone={0})
    assert list(found.new) == [1]


def test_executor_refuses_keys_of_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="an Executor does not take method"):
        hostler.Executor(method="tpe")


def test_executor_inside_a_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_DIR", str(tmp_path))
    with pytest.raises(UsageError, match="inside a run"):
        hostler.Executor()


def test_shut_down_executor_takes_no_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with hostler.Executor(store=str(tmp_path / "store")) as pool:
        pass
    with pytest.raises(UsageError, match="has been shut down"):
        pool.submit(train, 1)
