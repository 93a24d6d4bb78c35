"""A sweep's hours, by the store's clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostler.records.run import heartbeats
from hostler.records.sweep import deadline, sweeps
from hostler.spec.job import Budget, Job
from hostler.store import Store

JOB = Job(name="s", command=("x",), budget=Budget(hours=2))


def later(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    real = heartbeats.store_time
    monkeypatch.setattr(deadline.heartbeats, "store_time", lambda store: real(store) + 3600 * hours)


def test_hours_count_from_the_first_run_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    later(monkeypatch, 100)
    assert deadline.spent(store, "s") is None
    assert not deadline.is_over(store, JOB)
    deadline.begin(store, "s")
    assert deadline.is_over(store, JOB)


def test_sweep_out_of_hours_is_halted_and_says_why(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    deadline.begin(store, "s")
    assert not deadline.halt_if_over(store, JOB)
    later(monkeypatch, 3)
    deadline.begin(store, "s")  # again is no new beginning
    assert deadline.halt_if_over(store, JOB)
    assert (sweeps.halted(store, "s") or {})["why"] == "its budget of 2h is used up"


def test_more_hours_lift_it_and_as_many_do_not(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    deadline.begin(store, "s")
    later(monkeypatch, 3)
    deadline.halt_if_over(store, JOB)
    deadline.lift_if_allowed(store, JOB)
    assert sweeps.halted(store, "s")
    deadline.lift_if_allowed(store, replace(JOB, budget=Budget(hours=5)))
    assert not sweeps.halted(store, "s")


def test_a_halt_for_another_reason_is_left_alone(store: Store) -> None:
    sweeps.halt(store, "s", "the same error 5 times in a row")
    deadline.lift_if_allowed(store, JOB)
    assert sweeps.halted(store, "s")


def test_a_sweep_without_a_bound_asks_nothing_of_the_store(store: Store) -> None:
    assert not deadline.is_over(store, Job(name="s", command=("x",)))
