"""How many workers a sweep needs to be done in time."""

from __future__ import annotations

import pytest

from hostler.records.sweep import target
from hostler.records.sweep.target import Target, TargetView, finish, pace, wanted
from hostler.store.memory import MemoryStore

HOUR = 3600.0
AIM = Target(by=0.0, fleet="burst", workers=4, most=12, seconds=HOUR, boot=120.0)


def seen(left: float, runs: int = 40, workers: int = 4, took: tuple[float, ...] = (HOUR, HOUR)) -> TargetView:
    return TargetView(left, runs, workers, took)


def test_sweep_in_time_keeps_its_workers() -> None:
    assert wanted(AIM, seen(12 * HOUR)) == 4


def test_late_sweep_gets_the_fewest_workers_that_suffice() -> None:
    count = wanted(AIM, seen(7 * HOUR))
    assert 4 < count < 12
    assert finish(AIM, seen(7 * HOUR), count) <= 7 * HOUR < finish(AIM, seen(7 * HOUR), count - 2)


def test_hopeless_sweep_gets_what_its_money_allows_and_no_more() -> None:
    assert wanted(AIM, seen(HOUR)) == wanted(AIM, seen(-HOUR)) == AIM.most


def test_no_worker_comes_for_whom_no_run_is_left() -> None:
    assert wanted(AIM, seen(HOUR / 2, runs=6)) == 6
    assert wanted(AIM, seen(HOUR / 2, runs=2)) == 4  # who idles leaves by itself


def test_rate_that_changes_in_the_middle_counts() -> None:
    assert wanted(AIM, seen(12 * HOUR)) == 4
    assert wanted(AIM, seen(12 * HOUR, took=(*[HOUR] * 10, *[3 * HOUR] * 8))) == AIM.most
    assert pace(AIM, [HOUR] * 10 + [3 * HOUR] * 8) == 3 * HOUR
    assert pace(AIM, []) == HOUR and pace(AIM, [3 * HOUR]) == 2 * HOUR


def test_newest_target_counts_and_each_look_has_one_owner() -> None:
    store = MemoryStore()
    assert target.newest(store, "grid") is None
    assert [target.write(store, "grid", one) for one in (AIM, Target(by=5.0))] == [1, 2]
    assert target.newest(store, "grid") == (2, Target(by=5.0))
    assert target.takes_look(store, "grid", 2, 7) and not target.takes_look(store, "grid", 2, 7)
    assert target.takes_look(store, "grid", 2, 8)
    assert target.newest(store, "grid") == (2, Target(by=5.0))  # looks are no targets


@pytest.mark.parametrize("runs", [1, 7, 40])
def test_more_workers_are_never_later(runs: int) -> None:
    view = TargetView(0.0, runs, 1, (HOUR, HOUR))
    ends = [finish(Target(by=0.0, seconds=HOUR, boot=0.0), view, n) for n in range(1, 20)]
    assert ends == sorted(ends, reverse=True)
