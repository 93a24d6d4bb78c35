"""Which runs a worker claims to share a process with one that it has: over a store in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hostler.records.run import heartbeats
from hostler.records.sweep import rungs, sweeps
from hostler.settings import Timing
from hostler.spec import space
from hostler.spec.job import Budget, Job, Objective, Together
from hostler.spec.states import PAUSED
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.claimer import Taken
from hostler.worker.claim.finder import Finder
from hostler.worker.shared.process import SharingLimits

FREE = Together(limit=4, free=("x",))


def grid(count: int, **given: Any) -> Job:
    given = {"runs": tuple({"x": n} for n in range(count)), "together": FREE, **given}
    return Job(name="s", command=("train",), **given)


def search(runs: int, together: Together) -> Job:
    found = space.parse({"x": {"min": 0.0, "max": 1.0}}, method="tpe", runs=runs)
    return Job(
        name="s",
        command=("train",),
        runs=(),
        method="tpe",
        search=space.to_json(found),
        objectives=(Objective("loss", "min"),),
        budget=Budget(runs=runs),
        together=together,
    )


class Play:
    def __init__(self, job: Job) -> None:
        self.store, self.sharing = MemoryStore(), SharingLimits(wanted=True)
        sweeps.submit(self.store, job)
        self.held: set[str] = set()
        self.finder = Finder(self.store, Claimant("w"), Timing(lease=1e9), lambda: 0.0)

    def take(self) -> Taken:
        taken = self.finder.find(lambda ask: True, lambda ask: True).taken
        assert taken is not None
        return taken

    def mates(self, taken: Taken) -> list[int]:
        found = self.claimed(taken)
        return [one.attempt.key.index for one in found]

    def claimed(self, taken: Taken) -> list[Taken]:
        def limit(job: Job, run: Any) -> int:
            return self.sharing.limit(job, run.key.index, run.key.run, run.state)

        self.held.add(taken.attempt.key.run)
        found = self.finder.mates.claim(taken, limit, self.held)
        self.held |= {one.attempt.key.run for one in found}
        return found


def together(play: Play) -> list[int]:
    taken = play.take()
    return sorted([taken.attempt.key.index, *play.mates(taken)])


def sizes(play: Play, count: int) -> Sequence[int]:
    return [len(together(play)) for _ in range(count)]


def test_as_many_as_the_limit_allows_are_claimed_at_once() -> None:
    play = Play(grid(6))
    assert together(play) == [0, 1, 2, 3]
    assert together(play) == [4, 5]


def test_other_shapes_are_left_alone() -> None:
    play = Play(grid(0, runs=tuple({"x": n, "size": n % 2} for n in range(6))))
    first = play.take()
    size = first.attempt.key.index % 2
    assert {index % 2 for index in play.mates(first)} == {size}


def test_each_worker_that_is_alive_leaves_the_others_their_share() -> None:
    play = Play(grid(8, together=Together(limit=8, free=("x",))))
    heartbeats.beat(play.store, "w", 1, {})
    heartbeats.beat(play.store, "v", 1, {})
    assert len(together(play)) == 4


def test_what_has_begun_goes_with_what_has_begun() -> None:
    play = Play(grid(4))
    for one in play.claimed(play.take())[:2]:
        one.attempt.release(then="queued", why="preempted")
        play.held.discard(one.attempt.key.run)
    assert len(together(play)) == 2
    other = Play(grid(4))
    given_back = other.take()
    given_back.attempt.release(then="queued")
    assert together(other) in ([0], [1, 2, 3])


def test_run_that_failed_or_was_sent_back_goes_alone() -> None:
    play = Play(grid(3))
    taken = [play.take() for _ in range(3)]
    taken[0].attempt.release(then="queued", counts="failures")
    taken[1].attempt.release(then="queued")
    taken[2].attempt.release(then="queued")
    play.sharing.heed(taken[1].job, 1, taken[1].attempt.key.run, {"alone": True})
    assert sizes(play, 3) == [1, 1, 1]


def test_smaller_limit_of_a_process_holds_for_its_key() -> None:
    play = Play(grid(4))
    play.sharing.heed(grid(4), 0, "any", {"limit": 2})
    assert sizes(play, 2) == [2, 2]


def test_search_is_asked_for_several_only_if_told_to() -> None:
    assert sizes(Play(search(6, Together(limit=4, free=("x",), asked=True))), 2) == [4, 2]
    assert sizes(Play(search(6, Together(limit=4, free=("x",)))), 2) == [1, 1]


def test_those_that_a_pruner_promotes_go_on_together() -> None:
    job = grid(
        9,
        together=Together(limit=9, free=("x",)),
        prune={"method": "asha", "min": 1, "factor": 3},
        objectives=(Objective("loss", "min"),),
    )
    play = Play(job)
    taken = play.take()
    for one in [taken, *play.claimed(taken)]:
        loss = float(one.attempt.key.index)
        rungs.write(play.store, one.attempt.key, 1, loss, 1, one.attempt.number)
        one.attempt.release(then=PAUSED, why="rung")
        play.held.discard(one.attempt.key.run)
    assert together(play) == [0, 1, 2]


def test_paused_ones_are_not_woken_for_company() -> None:
    play = Play(grid(2))
    first, second = play.take(), play.take()
    first.attempt.release(then=PAUSED, why="rung")
    second.attempt.release(then="queued")
    assert len(together(play)) == 1
