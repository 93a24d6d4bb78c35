from __future__ import annotations

from hostler.records import project as projects
from hostler.records.launch import serving
from hostler.records.run import heartbeats
from hostler.settings import Timing
from hostler.store.memory import MemoryStore


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_worker_serves_while_its_beat_is_younger_than_a_lease() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    projects.ensure(store, "p", Timing(lease=10.0))
    heartbeats.beat(store, "w", 1, {"only": ["mine"]})
    clock.now += 9
    assert serving.look(store).serves("mine")
    assert not serving.look(store).serves("another")
    clock.now += 2
    assert not serving.look(store).serves("mine")
    assert serving.look(store).stale == {"w": 11.0}


def test_a_worker_without_a_choice_serves_every_sweep() -> None:
    store = MemoryStore()
    heartbeats.beat(store, "w", 1, {"only": []})
    assert serving.look(store).serves("any")


def test_a_look_leaves_nothing_behind() -> None:
    store = MemoryStore()
    serving.look(store)
    assert list(store.list("")) == []
