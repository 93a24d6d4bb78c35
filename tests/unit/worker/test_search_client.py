"""What workers ask and write down: over a store in memory, with runs that are played."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from hostler.records.run import control
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim, Lost
from hostler.records.run.log import RunKey
from hostler.records.sweep import rungs, sweeps
from hostler.records.sweep.journal import Journal
from hostler.records.sweep.queue import Queue
from hostler.records.sweep.rungs import RungReaders
from hostler.search.base import Done, Wait
from hostler.settings import Timing
from hostler.spec import space
from hostler.spec.job import Budget, Job, Objective
from hostler.spec.states import PAUSED
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.claimer import Taken
from hostler.worker.claim.finder import Finder, Found
from hostler.worker.claim.search_client import Promoted, SearchClient

PARAMETERS = {"x": {"min": 0.0, "max": 1.0}, "kind": ["a", "b"]}


def learning(runs: int = 6, *, repeat: Any = 1, method: str = "tpe", **given: Any) -> Job:
    found = space.parse(PARAMETERS, method=method, runs=runs, repeat=repeat)
    return Job(
        name="s",
        command=("train",),
        runs=(),
        method=method,
        search=space.to_json(found),
        objectives=(Objective("loss", "min"),),
        budget=Budget(runs=runs),
        **given,
    )


def grid(count: int, **given: Any) -> Job:
    return Job(
        name="s",
        command=("train",),
        runs=tuple({"x": n} for n in range(count)),
        objectives=(Objective("loss", "min"),),
        prune={"method": "asha"},
        **given,
    )


class Play:
    """Workers over one store; a run is played by ending or pausing its attempt."""

    def __init__(self, job: Job) -> None:
        self.store = MemoryStore()
        self.said: list[str] = []
        sweeps.submit(self.store, job)
        self.finder = self.another()

    def another(self, name: str = "w") -> Finder:
        return Finder(self.store, Claimant(name), Timing(lease=1e9), lambda: 0.0, say=self.said.append)

    def find(self, finder: Finder | None = None) -> Found:
        return (finder or self.finder).find(lambda ask: True, lambda ask: True)

    def take(self, finder: Finder | None = None) -> Taken:
        taken = self.find(finder).taken
        assert taken is not None
        return taken

    def end(self, taken: Taken, loss: float | None, state: str = "done") -> None:
        metrics = {} if loss is None else {"loss": {"last": loss, "min": loss, "max": loss, "step": 1}}
        taken.attempt.end(state, metrics=metrics)

    def pause(self, taken: Taken, level: int, loss: float) -> None:
        rungs.write(self.store, taken.attempt.key, level, loss, level, taken.attempt.number)
        taken.attempt.release(then=PAUSED, why="rung")

    def index(self, taken: Taken) -> int:
        return taken.attempt.key.index

    @property
    def job(self) -> Job:
        return sweeps.load(self.store, "s")


def test_each_claim_is_a_new_entry_until_the_budget_ends() -> None:
    play = Play(learning(4))
    taken = [play.take() for _ in range(4)]
    assert [play.index(one) for one in taken] == [0, 1, 2, 3]
    assert len({str(one.job.params(n)) for n, one in enumerate(taken)}) == 4
    found = play.find()
    assert (found.taken, found.becoming) == (None, 0)
    assert play.job.count == 4


def test_readers_see_the_runs_of_the_journal() -> None:
    play = Play(learning())
    taken = play.take()
    assert play.job.run_id(0) == taken.attempt.key.run
    assert play.job.params(0) == taken.job.params(0) == Journal(play.store, "s").read_on()[0].params
    assert sweeps.load_spec(play.store, "s")[0].runs == ()


def test_a_worker_takes_what_another_has_queued_before_it_asks() -> None:
    play = Play(learning())
    taken = play.take()
    taken.attempt.release(then="queued")
    assert play.index(play.take(play.another("v"))) == 0
    assert play.job.count == 1


def test_two_workers_share_one_journal() -> None:
    play, other = Play(learning(6)), None
    other = play.another("v")
    taken = [play.take(finder) for _ in range(3) for finder in (play.finder, other)]
    assert sorted(play.index(one) for one in taken) == list(range(6))


def test_what_one_worker_was_told_the_other_learns_from() -> None:
    """The same history makes the same question, whoever asks."""
    asked = []
    for who in ("one", "two"):
        play = Play(learning(30))
        other = play.another("v")
        for n in range(24):
            finder = other if who == "two" and n % 2 else play.finder
            taken = play.take(finder)
            play.end(taken, float(taken.job.params(play.index(taken))["x"]))
        asked.append([entry.params for entry in Journal(play.store, "s").read_on()])
    assert asked[0] == asked[1]
    first, last = [sum(p["x"] for p in asked[0][at]) / 10 for at in (slice(10), slice(14, 24))]
    assert last < first


def test_a_failed_run_is_told_and_does_not_come_again() -> None:
    play = Play(learning(3))
    play.end(play.take(), None, "failed")
    play.end(play.take(), None)
    play.end(play.take(), 0.5)
    assert play.find().taken is None
    assert play.job.count == 3


def test_repeats_follow_each_other_with_the_same_configuration() -> None:
    play = Play(learning(6, repeat={"seed": [7, 8, 9]}))
    params = [play.take().job.params(n) for n in range(6)]
    assert [p["seed"] for p in params] == [7, 8, 9] * 2
    assert len({p["x"] for p in params[:3]}) == 1
    assert params[0]["x"] != params[3]["x"]


def test_concurrent_askers_get_one_entry_each_within_the_budget() -> None:
    play = Play(learning(12, method="qmc"))
    won: list[str] = []

    def ask(n: int) -> None:
        finder = play.another(f"w{n}")
        while taken := play.find(finder).taken:
            won.append(taken.attempt.key.run)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == len(set(won)) == 12
    assert play.job.count == 12


def test_parallel_bound_keeps_entries_from_being_made_ahead() -> None:
    play = Play(learning(6, parallel=2))
    first, _ = play.take(), play.take()
    found = play.find()
    assert (found.taken, found.becoming) == (None, 1)
    assert play.job.count == 2
    play.end(first, 0.1)
    assert play.index(play.take()) == 2


def test_missing_sampler_is_reported_once_and_queued_runs_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play(learning())
    play.take().attempt.release(then="queued")
    monkeypatch.setitem(sys.modules, "optuna", None)
    other = play.another("v")
    assert play.index(play.take(other)) == 0
    for _ in range(3):
        found = play.find(other)
        assert (found.taken, found.becoming) == (None, 0)
    [line] = [line for line in play.said if "optuna" in line]
    assert "hostler[search]" in line and "left to other workers" in line


def test_best_of_three_paused_runs_continues_before_a_fourth_starts() -> None:
    play = Play(grid(9))
    for loss in (0.5, 0.1, 0.9):
        play.pause(play.take(), 1, loss)
    taken = play.take()
    assert (play.index(taken), taken.attempt.number, taken.attempt.state.until) == (1, 3, 3)
    assert play.index(play.take()) == 3


def test_the_same_for_a_search_that_learns() -> None:
    play = Play(learning(9, prune={"method": "asha"}))
    for loss in (0.5, 0.1, 0.9):
        play.pause(play.take(), 1, loss)
    taken = play.take()
    assert (play.index(taken), taken.attempt.state.until) == (1, 3)
    assert play.index(play.take()) == 3


def test_of_two_workers_one_promotes() -> None:
    play = Play(grid(3))
    other = play.another("v")
    for loss in (0.5, 0.1, 0.9):
        play.pause(play.take(), 1, loss)
    assert play.index(play.take()) == 1
    found = play.find(other)
    assert (found.taken, found.becoming, found.paused) == (None, 1, 2)


def test_what_a_person_paused_is_not_promoted() -> None:
    play = Play(grid(3))
    taken = [play.take() for _ in range(3)]
    for one, loss in zip(taken, (0.5, 0.1, 0.9), strict=True):
        rungs.write(play.store, one.attempt.key, 1, loss, 1, 1)
        control.pause(play.store, one.attempt.key)
        one.attempt.release(then=PAUSED, why="rung")
    found = play.find()
    assert (found.taken, found.becoming) == (None, 0)


def test_what_a_person_resumed_is_let_alone_from_then_on() -> None:
    play = Play(grid(2))
    taken = play.take()
    play.pause(taken, 1, 0.5)
    control.resume(play.store, taken.attempt.key)
    state = control.state_of(play.store, taken.attempt.key)
    assert (state.state, state.freed) == ("queued", True)


def test_at_the_end_the_best_goes_on_and_nobody_else() -> None:
    play = Play(grid(2))
    play.pause(play.take(), 1, 0.5)
    play.pause(play.take(), 1, 0.1)
    taken = play.take()
    assert (play.index(taken), taken.attempt.state.until) == (1, 3)
    assert play.find().becoming == 1
    play.pause(taken, 3, 0.1)
    again = play.take()
    assert (play.index(again), again.attempt.state.until) == (1, 9)
    play.end(again, 0.1)
    found = play.find()
    assert (found.taken, found.becoming, found.paused) == (None, 0, 1)


def test_failed_winner_gives_its_place_to_the_next_at_last() -> None:
    play = Play(grid(2))
    play.pause(play.take(), 1, 0.5)
    play.pause(play.take(), 1, 0.1)
    play.end(play.take(), None, "failed")
    assert play.index(play.take()) == 0


def test_lost_promoted_run_continues_up_to_its_promotion() -> None:
    play = Play(grid(3))
    for loss in (0.5, 0.1, 0.9):
        play.pause(play.take(), 1, loss)
    taken = play.take()
    log = Queue(play.store, play.job).log(taken.attempt.key.run).read_on()
    again = claim(play.store, log, 1.0, lambda: 0.0, Claim("v", Lost(1, False)))
    assert again is not None and again.state.until == 3


def test_an_asker_alone_says_wait_and_done() -> None:
    store = MemoryStore()
    sweeps.submit(store, grid(1))
    queue = Queue(store, sweeps.load_spec(store, "s")[0])
    asker = SearchClient(store, RungReaders(store), print)
    assert asker.ask(queue, queue.open()) == Wait()
    key = RunKey("s", queue.job.run_id(0))
    control.stop(store, key)
    assert isinstance(asker.ask(queue, queue.open(whole=True)), Done)


def test_a_sweep_that_neither_learns_nor_pauses_is_not_asked() -> None:
    play = Play(Job(name="s", command=("train",), runs=({"x": 1},)))
    asked: list[str] = []
    play.store.before = lambda op, key: asked.append(key)
    play.take()
    play.find()
    assert not [key for key in asked if "rungs" in key or "journal" in key]


def test_promotion_names_a_run_and_how_far_it_may_go() -> None:
    play = Play(learning(2))
    queue = Queue(play.store, sweeps.load_spec(play.store, "s")[0])
    answer = SearchClient(play.store, RungReaders(play.store), print).ask(queue, [])
    assert isinstance(answer, Promoted) and answer.until == 0
    assert answer.run.key.run == play.job.run_id(0)


def test_unlogged_metric_halts_the_search_and_lists_logged_ones() -> None:
    play = Play(learning(20))
    for _ in range(3):
        play.take().attempt.end("done", metrics={"acc": {"last": 1.0}, "system/cpu": {"last": 2.0}})
    found = play.find()
    assert (found.taken, play.job.count) == (None, 3)
    halt = sweeps.halted(play.store, "s")
    assert halt and halt["why"] == "3 runs are done and none has logged loss (logged: acc)"


def test_one_value_is_enough_to_go_on() -> None:
    play = Play(learning(20))
    play.end(play.take(), 0.5)
    for _ in range(3):
        play.end(play.take(), None)
    assert play.find().taken is not None
