from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hostler.search import telling
from hostler.search.asha import Asha
from hostler.search.base import Done, Go, History, New, Pause, Resume, Standing, Trial, Wait
from hostler.search.pruners import Median
from hostler.search.search import Search, grouped


@dataclass
class Counting:
    """A sampler that picks the number of the trial."""

    seen: list[Sequence[Trial]] = field(default_factory=list)

    def next(self, trials: Sequence[Trial]) -> New:
        self.seen.append(trials)
        return New({"x": len(trials)}, {"note": len(trials)})


def trial(n: int, state: str = telling.DONE, value: float | None = 0.0, x: float = 0) -> Trial:
    values = None if value is None or state == telling.LIVE else (value,)
    return Trial(n, f"{n:07d}-s-x", state, {"x": x}, values=values)


def test_a_new_configuration_while_the_budget_lasts() -> None:
    assert Search(Counting(), budget=2).ask(History([trial(0)])) == New({"x": 1}, {"note": 1})


def test_done_when_the_budget_is_used_up_whatever_still_runs() -> None:
    assert isinstance(Search(Counting(), budget=1).ask(History([trial(0, telling.LIVE)])), Done)


def test_without_a_budget_there_is_always_another() -> None:
    assert isinstance(Search(Counting()).ask(History([trial(n) for n in range(9)])), New)


def test_a_promotion_goes_before_a_new_configuration() -> None:
    rungs = {1: {f"{n:07d}-s-x": float(n) for n in range(3)}}
    found = Search(Counting(), Asha(), 9).ask(History([trial(n, telling.PAUSED) for n in range(3)], rungs))
    assert found == Resume("0000002-s-x", 3)


def test_pausing_search_waits_for_running_runs() -> None:
    live = History([trial(0, telling.PAUSED), trial(1, telling.LIVE)], {1: {"0000000-s-x": 1.0}})
    assert Search(Counting(), Asha(), 2).ask(live) == Wait()
    assert Search(None, Asha()).ask(live) == Wait()


def test_best_waiting_run_resumes_though_a_higher_one_failed() -> None:
    rungs = {1: {"0000000-s-x": 1.0, "0000001-s-x": 2.0}, 3: {"0000001-s-x": 2.0}}
    history = History([trial(0, telling.PAUSED), trial(1, telling.FAILED, None)], rungs)
    assert Search(Counting(), Asha(), 2).ask(history) == Resume("0000000-s-x", 3)


def test_no_run_resumes_once_one_is_done() -> None:
    rungs = {1: {"0000000-s-x": 1.0, "0000001-s-x": 2.0}, 3: {"0000001-s-x": 2.0}}
    history = History([trial(0, telling.PAUSED), trial(1, telling.DONE)], rungs)
    assert isinstance(Search(Counting(), Asha(), 2).ask(history), Done)


def test_a_pruner_that_only_stops_leaves_nothing_to_wait_for() -> None:
    assert isinstance(Search(Counting(), Median(), 1).ask(History([trial(0, telling.LIVE)])), Done)


def test_a_run_is_judged_by_the_pruner() -> None:
    rungs = {1: {"0000000-s-x": 1.0}}
    assert Search(None, Asha()).should_prune(Standing("0000000-s-x", 1), History([], rungs)) == Pause()
    assert Search(None).should_prune(Standing("0000000-s-x", 1), History([], rungs)) == Go()


def test_sampler_sees_the_mean_of_repeats() -> None:
    sampler = Counting()
    search = Search(sampler, budget=9, repeat=3)
    asked = search.ask(History([trial(0, x=7), trial(1, x=7)]))
    assert asked == New({"x": 7}, {})
    assert not sampler.seen
    search.ask(History([trial(n, value=float(n)) for n in range(3)]))
    assert [(one.number, one.state, one.values) for one in sampler.seen[0]] == [(0, telling.DONE, (1.0,))]


def test_a_configuration_is_running_while_one_of_its_repeats_is() -> None:
    [one] = grouped([trial(0), trial(1, telling.LIVE)], 2)
    assert (one.state, one.values) == (telling.LIVE, None)


def test_failed_repeats_are_left_out_of_the_mean() -> None:
    one, other = grouped(
        [
            trial(0, value=4.0),
            trial(1, telling.FAILED, None),
            *(trial(n, telling.FAILED, None) for n in (2, 3)),
        ],
        2,
    )
    assert (one.state, one.values) == (telling.DONE, (4.0,))
    assert (other.number, other.state, other.values) == (1, telling.FAILED, None)
