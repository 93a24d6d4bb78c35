from __future__ import annotations

import math
from typing import Any

import pytest

from hostler.records.sweep.journal import JournalEntry
from hostler.search import telling
from hostler.spec.job import Objective

RUN = "0000000-s-aaaaaa"
LOSS = [Objective("loss", "min")]


def told(end: dict[str, Any] | None, *, paused: bool = False, rungs: Any = None) -> Any:
    entry = JournalEntry({"x": 1}, {"x": 1}, {"g": 2})
    facts = telling.Facts({RUN: end} if end else {}, rungs or {}, paused={RUN} if paused else ())
    [found] = telling.trials([entry], [RUN], facts, LOSS)
    return found


def end(state: str, last: float | None = 0.5) -> dict[str, Any]:
    return {
        "state": state,
        "metrics": {} if last is None else {"loss": {"last": last, "min": 0.1, "max": 9.0}},
    }


@pytest.mark.parametrize(
    ("ended", "state", "values"),
    [
        (None, telling.LIVE, None),
        (end("done"), telling.DONE, (0.5,)),
        (end("done", None), telling.FAILED, None),
        (end("done", math.nan), telling.FAILED, None),
        (end("done", math.inf), telling.FAILED, None),
        (end("failed"), telling.FAILED, (0.5,)),
        (end("diverged"), telling.FAILED, (0.5,)),
        (end("stopped"), telling.FAILED, (0.5,)),
        (end("pruned"), telling.DONE, (0.5,)),
    ],
)
def test_each_end_is_told_as_what_it_is(ended: Any, state: str, values: Any) -> None:
    found = told(ended)
    assert (found.state, found.values) == (state, values)


def test_run_ended_by_others_is_told_as_pruned() -> None:
    found = told(end("pruned"), rungs={3: {RUN: 0.4}, 1: {RUN: 0.8, "other": 9.0}})
    assert (found.state, found.curve) == (telling.PRUNED, {1: 0.8, 3: 0.4})


def test_a_paused_run_is_told_as_far_as_it_came() -> None:
    assert told(None, paused=True, rungs={1: {RUN: 0.8}}).state == telling.PAUSED


def test_what_a_person_paused_is_neither_over_nor_waited_for() -> None:
    facts = telling.Facts({}, {1: {RUN: 0.8}}, held={RUN})
    [found] = telling.trials([JournalEntry({}, {}, {})], [RUN], facts, LOSS)
    assert found.state == telling.HELD


def test_what_it_was_given_comes_with_it() -> None:
    found = told(None)
    assert (found.number, found.run, found.picks, found.attrs) == (0, RUN, {"x": 1}, {"g": 2})


def test_with_several_objectives_all_must_have_a_number() -> None:
    both = [Objective("loss", "min"), Objective("acc", "max")]
    assert telling.values_of({"metrics": {"loss": {"last": 1.0}, "acc": {"last": 2.0}}}, both) == (1.0, 2.0)
    assert telling.values_of({"metrics": {"loss": {"last": 1.0}}}, both) is None
    assert telling.values_of({}, both) is None


def test_scores_are_values_turned_so_that_more_is_better() -> None:
    assert telling.scores({1: {"a": 2.0, "b": math.nan}}, "min") == {1: {"a": -2.0, "b": -math.inf}}
    assert telling.scores({1: {"a": 2.0}}, "max") == {1: {"a": 2.0}}


def test_what_has_not_changed_is_the_very_same_trial() -> None:
    entries, runs = [JournalEntry({}), JournalEntry({})], [RUN, "0000001-s-b"]
    first = telling.trials(entries, runs, telling.Facts({RUN: end("done")}), LOSS)
    ends = {RUN: first[0].end or {}, runs[1]: end("failed")}
    again = telling.trials(entries, runs, telling.Facts(ends), LOSS, first)
    assert again[0] is first[0]
    assert [trial.state for trial in again] == [telling.DONE, telling.FAILED]


def test_reopened_run_is_told_as_running() -> None:
    facts = telling.Facts({RUN: end("failed")}, open={RUN})
    assert telling.trials([JournalEntry({})], [RUN], facts, LOSS)[0].state == telling.LIVE
