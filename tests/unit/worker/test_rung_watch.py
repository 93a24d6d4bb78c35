from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from hostler.records.run.log import RunKey
from hostler.records.series.points import Point
from hostler.records.sweep import rungs
from hostler.records.sweep.rungs import RungReader
from hostler.search.asha import Asha
from hostler.search.base import Pruner
from hostler.search.pruners import Median, Patience
from hostler.spec.job import Objective
from hostler.store.answer import StoreUnreachable
from hostler.store.memory import MemoryStore
from hostler.worker.run.rung_watch import RungWatch

ME = RunKey("s", "0000009-s-me")


class Desk:
    """A watch that is worked by hand, and what it did."""

    def __init__(
        self, pruner: Pruner, goal: str = "max", until: int = 0, earlier: Sequence[Point] = ()
    ) -> None:
        self.store = MemoryStore()
        self.stopped: list[str] = []
        self.said: list[str] = []
        self.watch = RungWatch(
            self.store,
            ME,
            1,
            pruner,
            Objective("acc", goal),
            RungReader(self.store, "s"),
            until=until,
            earlier=lambda: earlier,
            save=lambda: self.stopped.append("saved"),
            stop=self.stopped.append,
            say=self.said.append,
        )

    def others(self, level: int, *values: float) -> None:
        for n, value in enumerate(values):
            rungs.write(self.store, RunKey("s", f"{n:07d}-s-x"), level, value, level, 1)

    def log(self, step: int, value: float, name: str = "acc") -> list[str]:
        self.watch.take([Point(step, 0.0, {name: value})])
        self.watch.work()
        return self.stopped

    @property
    def written(self) -> dict[int, float]:
        found = RungReader(self.store, "s").update()
        return {level: here[ME.run] for level, here in found.items() if ME.run in here}


def test_a_run_behind_the_others_is_saved_and_paused() -> None:
    desk = Desk(Asha())
    desk.others(1, 0.9, 0.8)
    assert desk.log(1, 0.1) == ["saved", "rung"]
    assert desk.said == ["pauses at step 1: others are better so far; it goes on if that changes"]
    assert desk.watch.rung == 1


def test_best_run_continues_and_is_judged_at_the_next_level() -> None:
    desk = Desk(Asha())
    desk.others(1, 0.1, 0.2)
    assert desk.log(1, 0.5) == []
    assert desk.log(2, 0.6) == []
    assert desk.log(3, 0.7) == ["saved", "rung"]
    assert desk.written == {1: 0.5, 3: 0.7}


def test_where_less_is_better_less_goes_on() -> None:
    desk = Desk(Asha(), goal="min")
    desk.others(1, 0.5, 0.6)
    assert desk.log(1, 0.1) == []


def test_a_promoted_run_is_not_judged_again_below_its_level() -> None:
    desk = Desk(Asha(), until=3)
    desk.others(1, 0.9, 0.8)
    assert desk.log(1, 0.1) == []
    assert desk.written == {}
    assert desk.log(3, 0.1) == ["saved", "rung"]


def test_run_resumed_from_an_older_checkpoint_keeps_its_first_value() -> None:
    desk = Desk(Asha())
    rungs.write(desk.store, ME, 1, 0.9, 1, 1)
    desk.others(1, 0.5, 0.6)
    assert desk.log(1, 0.1) == []
    assert desk.written == {1: 0.9}


def test_metric_logged_after_the_pause_request_counts_for_nothing() -> None:
    desk = Desk(Asha())
    desk.others(1, 0.9, 0.8)
    desk.log(1, 0.1)
    assert desk.log(3, 0.9) == ["saved", "rung"]
    desk.watch.close()
    assert desk.written == {1: 0.1}


def test_other_metrics_are_not_looked_at() -> None:
    desk = Desk(Asha())
    assert desk.log(1, 0.1, name="loss") == []
    assert desk.written == {}


def test_levels_that_came_in_one_piece_are_judged_in_order() -> None:
    desk = Desk(Asha())
    desk.others(1, 0.9, 0.8)
    desk.watch.take([Point(n, 0.0, {"acc": 0.1}) for n in range(1, 10)])
    desk.watch.work()
    assert desk.stopped == ["saved", "rung"]
    assert desk.written == {1: 0.1}


def test_run_that_ended_itself_leaves_its_value_and_is_unstopped() -> None:
    desk = Desk(Asha())
    desk.watch.take([Point(1, 0.0, {"acc": 0.1}), Point(3, 0.0, {"acc": 0.2})])
    desk.watch.close()
    assert desk.stopped == []
    assert desk.written == {1: 0.1, 3: 0.2}


def test_a_pruner_that_stops_ends_it() -> None:
    desk = Desk(Median(others=2))
    desk.others(1, 0.9, 0.8)
    assert desk.log(1, 0.1) == ["saved", "prune"]
    assert desk.said == ["ends at step 1: below the median at step 1"]


def test_patience_needs_nothing_of_the_store() -> None:
    desk = Desk(Patience(2))
    for step, value in enumerate([0.1, 0.3, 0.2], start=1):
        assert desk.log(step, value) == []
    assert desk.log(4, 0.3) == ["saved", "prune"]
    assert desk.written == {}


def test_patience_remembers_what_attempts_before_it_measured() -> None:
    earlier = [Point(n, 0.0, {"acc": value}) for n, value in enumerate([0.9, 0.5], start=1)]
    desk = Desk(Patience(2), earlier=[*earlier, Point(2, 0.0, {"loss": 7.0})])
    assert desk.log(3, 0.8) == ["saved", "prune"]


def test_first_report_at_step_zero_is_judged_where_reports_count() -> None:
    desk = Desk(Patience(1))
    desk.log(0, 0.5)
    assert desk.log(1, 0.4) == ["saved", "prune"]


def test_a_value_that_is_no_number_is_behind_all_others() -> None:
    desk = Desk(Asha(), goal="min")
    desk.others(1, 5.0, 6.0)
    assert desk.log(1, math.nan) == ["saved", "rung"]


def test_run_continues_without_the_store_and_is_judged_later() -> None:
    desk = Desk(Asha())
    desk.others(1, 0.9, 0.8)

    def silent(op: str, key: str) -> None:
        raise StoreUnreachable("no answer")

    desk.store.before = silent
    desk.watch.take([Point(1, 0.0, {"acc": 0.1})])
    with pytest.raises(StoreUnreachable):
        desk.watch.work()
    assert desk.stopped == []
    desk.store.before = lambda op, key: None
    desk.watch.work()
    assert desk.stopped == ["saved", "rung"]


def test_its_own_thread_judges_and_ends_with_the_attempt() -> None:
    desk = Desk(Asha())
    desk.others(1, 0.1, 0.2)
    desk.watch.start()
    desk.watch.take([Point(1, 0.0, {"acc": 0.5})])
    desk.watch.close()
    assert desk.written == {1: 0.5}
    assert desk.watch._thread is not None and not desk.watch._thread.is_alive()
