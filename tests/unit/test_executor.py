"""Calls of functions before they are submitted: arguments as parameters, and what cannot be sent."""

from __future__ import annotations

import builtins
import concurrent.futures
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hostler
import servers
from hostler.backends.registry import HERE
from hostler.errors import HostlerError, UsageError
from hostler.executor import FunctionJob, _FunctionCalls, _params
from hostler.fleet import edit
from hostler.records import layout
from hostler.records.launch import ledger
from hostler.records.rows import rows
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec import spans
from hostler.spec.job import Job
from hostler.spec.plain_data import least_size, plain
from hostler.spec.rounds import Round
from hostler.spec.space import Listed
from hostler.spec.states import DONE, QUEUED, RUNNING

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def train(lr: float, width: int = 1, **more: Any) -> None: ...


def counted(lr: float) -> Iterator[float]:
    yield lr


async def awaited(lr: float) -> float:
    return lr


def placed(first: int, /, *values: int, **more: int) -> None: ...


def test_arguments_become_parameters_by_name() -> None:
    assert _params(train, (0.1,), {"width": 2, "seed": 3}) == {"lr": 0.1, "width": 2, "seed": 3}
    assert _params(placed, (1, 2, 3), {"more": 4}) == {"first": 1, "values": [2, 3], "more": 4}


@pytest.mark.parametrize(
    ("function", "args", "says"),
    [
        (train, (), "train(): missing a required argument: 'lr'"),
        (counted, (1,), "counted() is a generator: nothing would compute its values"),
        (awaited, (1,), "awaited() is a coroutine: nothing would await it"),
        (max, (1, 2), "max() does not say what it takes"),
        (train, (object(),), "train(): lr is a builtins.object, which is not plain data"),
        (train, ([{"net": {1: 2}}],), "train(): lr[0]['net'] has the key 1, which is not a text"),
    ],
)
def test_call_that_cannot_be_sent_says_why(function: Any, args: tuple[Any, ...], says: str) -> None:
    with pytest.raises(UsageError) as error:
        _params(function, args, {})
    assert says in error.value.message


def test_argument_by_place_and_another_of_its_name_are_refused() -> None:
    with pytest.raises(UsageError, match=r"placed\(\): first is given by place and by name"):
        _params(placed, (1,), {"first": 2})


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


@given(PLAIN)
def test_least_size_is_never_above_the_real_one(value: Any) -> None:
    assert least_size(value, 10**6) <= len(json.dumps(value))


def test_huge_value_is_measured_without_a_copy_of_it() -> None:
    assert least_size([[0] * 10] * 10**7, 1000) > 1000
    assert least_size([0] * 10**6, 2.9e6) > 2.9e6
    endless: list[Any] = []
    endless.append(endless)
    assert least_size(endless, 10**9) < 1000


def test_array_says_how_it_becomes_plain_data() -> None:
    with pytest.raises(ValueError, match=r"numpy.ndarray, which is not plain data; its .tolist\(\) is"):
        plain(servers.library("numpy").arange(3), "x")


@pytest.mark.parametrize("value", ["a\ud800", {"\udcff": 1}])
def test_text_that_cannot_be_written_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"x holds '.*', which is half a letter"):
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
    with pytest.raises(UsageError, match=r"does not take max_workers .*parallel=4"):
        hostler.Executor(max_workers=4)


def test_executor_inside_a_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_DIR", str(tmp_path))
    with pytest.raises(UsageError, match="inside a run"):
        hostler.Executor()


def test_lambda_without_cloudpickle_is_refused_before_anything_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name == "cloudpickle":
            raise ModuleNotFoundError(name=name)
        return real(name, *rest, **more)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builtins, "__import__", absent)
    with hostler.Executor(store=str(tmp_path / "store")) as pool:
        with pytest.raises(UsageError, match="cloudpickle, which is not installed") as error:
            pool.submit(lambda x: x + 1, 1)
        assert "\n" not in str(error.value) and "pip install 'hostler[notebooks]'" in error.value.hint
        assert not list(pool.store.list(""))


def test_one_folder_that_is_not_code_need_not_be_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert hostler.Executor(leave="results")._leave == ("results",)


def test_shut_down_executor_takes_no_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with hostler.Executor(store=tmp_path / "store") as pool:
        assert pool.store.url == str(tmp_path / "store")
    with pytest.raises(UsageError, match="has been shut down"):
        pool.submit(train, 1)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"on": "nope"}, "no fleet named 'nope'"),
        ({"on": ["desk"]}, "on is .*, which is not a text .the name of one fleet"),
        ({"resources": {"gpu": 1}}, "no such key 'gpu'"),
        ({"retries": -1}, "must be at least 0"),
    ],
)
def test_executor_refuses_what_no_call_could_use(
    keys: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HostlerError, match=says):
        hostler.Executor(**keys)


def workers(backend: str) -> Any:
    """A launcher, and what it was started for."""
    engine = SimpleNamespace(capabilities=SimpleNamespace(shared=False))
    return SimpleNamespace(fleet=SimpleNamespace(backend=backend), engine=engine), SimpleNamespace()


def test_calls_that_nobody_takes_get_workers_then_are_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hostler.executor.ALONE", 0.0)
    started: list[Any] = []
    monkeypatch.setattr("hostler.executor.start_workers", lambda *given, **more: started.append(given))
    pool = hostler.Executor(store=str(tmp_path / "store"))
    pool._started["train"] = workers(HERE)
    for _ in range(3):
        pool._see_to_workers("train", [FunctionJob(pool, train, {})], [])
    assert len(started) == 1
    line = "train: nobody works on 1 call: has this machine the resources that they ask for?"
    assert capsys.readouterr().err.count(line) == 1


def test_calls_without_workers_and_money_end_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hostler.executor.ALONE", 0.0)

    def refused(*given: Any, **more: Any) -> None:
        raise UsageError("the budget is used up")

    monkeypatch.setattr("hostler.executor.start_workers", refused)
    pool = hostler.Executor(store=str(tmp_path / "store"))
    pool._started["train"] = workers(HERE)
    job = FunctionJob(pool, train, {})
    pool._see_to_workers("train", [job], [])
    assert "the budget is used up" in str(job.exception(0))


@pytest.mark.parametrize("harm", ["damaged", "half-gone", "code"])
def test_damaged_earlier_calls_keep_no_new_ones_from_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    started: list[str] = []
    monkeypatch.setattr(
        "hostler.executor.start_workers", lambda store, workers, done, **more: started.append(done.job.name)
    )
    pool = hostler.Executor(store=str(tmp_path / "store"), leave=["store", "cache"])
    for code in ("first", "second"):
        (tmp_path / "code.py").write_text(f"name = {code!r}")
        job = FunctionJob(pool, statistics.mean, {"data": [1, 2]})
        pool._submit(_FunctionCalls(statistics.mean, None), [job])
        if code == "first":
            assert job.key is not None
            source = sweeps.load(pool.store, job.key.sweep).source
            spec = tmp_path / "store" / layout.spec(job.key.sweep, 1)
            hurt = spec if harm == "damaged" else tmp_path / "store" / layout.code(str(source.snapshot))
            spec.rename(spec.parents[1] / "left") if harm == "half-gone" else hurt.write_bytes(b"{")
    assert len(set(started)) == 2 and job.key is not None and job.key.sweep == started[1]


def test_machine_that_left_with_all_done_fails_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pool, key = hostler.Executor(store=str(tmp_path / "store")), RunKey("train", "0000000-train-abcdef")
    states = {RUNNING: True, DONE: True, QUEUED: False}
    for state, taken in states.items():
        row = SimpleNamespace(key=key, state=state)
        monkeypatch.setattr("hostler.executor.rows", lambda *given, row=row, **more: [row])
        assert pool._are_taken({key}, "train") is taken


def test_refused_launch_is_tried_again_once_another_has_left_the_money(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hostler.executor.ALONE", 0.0)
    started: list[Any] = []

    def refused(*given: Any, **more: Any) -> None:
        started.append(given)
        if ledger.read(pool.store, "train").open:
            raise UsageError("the budget is used up")

    monkeypatch.setattr("hostler.executor.start_workers", refused)
    pool = hostler.Executor(store=tmp_path / "store")
    job = FunctionJob(pool, train, {})
    pool._started["train"] = workers("another")
    held = ledger.reserve(pool.store, "train", 5.0, fleet="burst", generation=1, launch="l")
    assert held is not None
    pool._start("train", always=True)
    pool._see_to_workers("train", [job], [])
    ledger.give_back(pool.store, "train", held.n, 5.0)
    for _ in range(3):
        pool._see_to_workers("train", [job], [])
    assert len(started) == 3 and not job.done()


def test_call_that_met_a_cap_is_resumed_by_asking_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hostler.executor.OVER", -1.0)
    pool = hostler.Executor(store=str(tmp_path / "store"))
    job = calls({"x": 1}, {"x": 2})
    sweeps.submit(pool.store, job)
    ours, theirs = (RunKey("f", job.run_id(index)) for index in range(2))
    for key in (ours, theirs):
        run_log = RunLog(pool.store, key).read_on()
        attempt = claim(pool.store, run_log, 60.0, lambda: 0.0, Claim())
        assert attempt is not None
        attempt.release(then="paused", why="cap")
    call = FunctionJob(pool, train, {})
    call.key = ours
    pool._started["f"] = workers("another")
    group: Any = SimpleNamespace(waiting=[call])
    pool._give_up(group, "f", rows(pool.store, ["f"]))
    assert "a cap ended its workers" in str(call.exception(0))
    again = FunctionJob(pool, train, {})
    again.key, group.waiting = ours, [again]
    pool._try_again({ours}, job)
    found = rows(pool.store, ["f"])
    assert [row.state for row in found] == ["queued", "paused"]
    pool._give_up(group, "f", found)
    assert not again.done()
