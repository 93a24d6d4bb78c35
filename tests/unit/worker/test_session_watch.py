"""The watch of a worker over others: fed by its beats, on a clock of the test."""

from __future__ import annotations

import random

import pytest

from hostler.records.run import heartbeats
from hostler.settings import Timing
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.session_watch import WATCHERS, SessionWatch
from hostler.worker.pulse import Pulse
from hostler.worker.session_name import new_session

TIMING = Timing(beat=10.0, lease=60.0)


class Scene:
    def __init__(self, session: str = "me", share: float = 0.0) -> None:
        self.now, self.lists, self.sequence = 0.0, 0, 0
        self.store = MemoryStore(clock=lambda: self.now)
        rng = random.Random()
        rng.random = lambda: share  # type: ignore[method-assign]
        self.watch = SessionWatch(self.store, Claimant(session), TIMING, lambda: self.now, rng)
        self.pulse = Pulse(self.store, session, TIMING, {}, lambda: self.now, watch=self.watch)
        self.store.before = self._count

    def _count(self, operation: str, key: str) -> None:
        self.lists += operation == "list"

    def beat(self, *others: str, times: int = 1) -> None:
        """The worker beats, and so do these, each beat."""
        for _ in range(times):
            self.sequence += 1
            for other in others:
                heartbeats.beat(self.store, other, self.sequence, {})
            self.pulse.beat()
            self.now += TIMING.beat


def test_busy_worker_knows_a_lost_one_after_a_lease() -> None:
    scene = Scene()
    scene.beat("a", "b", times=3)
    scene.beat("b", times=5)
    assert scene.watch.lost == frozenset()
    scene.beat("b")
    assert scene.watch.lost == {"a"}


def test_a_beat_costs_a_small_fleet_one_list() -> None:
    scene = Scene()
    scene.beat("a", times=6)
    assert scene.lists == 6


@pytest.mark.parametrize(("share", "lists"), [(0.31, 13), (0.33, 3)])
def test_large_fleet_lists_by_few_at_each_beat(share: float, lists: int) -> None:
    """Of 200 workers those with a share under 64/200 watch; the others look once a lease."""
    scene = Scene(share=share)
    scene.beat(*(f"w{n}" for n in range(3 * WATCHERS + 7)), times=13)
    assert scene.lists == lists


def test_fleet_of_which_most_have_died_is_small_again() -> None:
    scene, fleet = Scene(share=0.9), [f"w{n}" for n in range(200)]
    scene.beat(*fleet, times=13)
    scene.beat(*fleet[:20], times=24)
    assert len(scene.watch.lost) == 180


def test_lost_session_is_news_until_its_runs_were_searched() -> None:
    scene = Scene()
    scene.beat("a")
    scene.beat(times=7)
    assert scene.watch.lost == {"a"}
    scene.watch.looked_deep(scene.watch.look())
    assert scene.watch.lost == frozenset()
    scene.beat("a")
    scene.beat(times=7)
    assert scene.watch.lost == {"a"}, "it beat again, and is lost anew"


def test_silent_session_is_due_when_its_lease_is_over() -> None:
    scene = Scene()
    scene.beat("a")
    scene.beat(times=2)
    assert scene.watch.silent == frozenset() and scene.watch.due == float("inf")
    scene.beat()
    assert scene.watch.silent == {"a"}
    scene.now += 5.0
    assert scene.watch.due == 60.0 - 45.0


def test_holder_without_heartbeat_is_watched_from_its_first_look() -> None:
    scene = Scene()
    scene.watch.look(["unseen"], whole=True)
    scene.beat(times=6)
    assert scene.watch.lost == frozenset()
    scene.beat()
    assert scene.watch.lost == {"unseen"}


def test_predecessor_in_the_same_place_is_lost_at_once() -> None:
    before, here, later = (new_session("h", "71_2", n) for n in (0, 1, 2))
    scene = Scene(here)
    heartbeats.beat(scene.store, before, 1, {})
    heartbeats.beat(scene.store, later, 1, {})
    scene.now += 1.5 * TIMING.beat
    scene.pulse.beat()
    assert scene.watch.lost == scene.watch.outlived == {before}


def test_predecessor_that_beats_still_is_not_lost() -> None:
    before, here = (new_session("h", "71_2", n) for n in (0, 1))
    scene = Scene(here)
    scene.beat(before, times=9)
    assert scene.watch.lost == scene.watch.outlived == frozenset()
    scene.beat(times=3)
    assert scene.watch.lost == {before}


def test_watch_that_was_cut_off_begins_anew() -> None:
    scene = Scene()
    scene.beat("a")
    scene.beat(times=5)
    scene.now += 20.0
    scene.beat(times=6)
    assert scene.watch.lost == frozenset()
    scene.beat()
    assert scene.watch.lost == {"a"}


def test_read_that_a_later_one_overtook_changes_nothing() -> None:
    watch = heartbeats.Watch(lease=8.0)
    for stamp in range(1, 10):
        watch.observe(float(stamp), {"s": "new"}, ["s"])
    assert watch.observe(0.5, {"s": "old"}, ["s"]) == {"s"}
    assert watch.observe(10.0, {"s": "new"}, ["s"]) == {"s"}
