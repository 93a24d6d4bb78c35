"""All workers of a project share one beat and one lease."""

from __future__ import annotations

from hostler.records import layout, project
from hostler.settings import Timing
from hostler.store import Store


def test_the_first_to_come_sets_the_times_for_all(store: Store) -> None:
    mine, others = Timing(beat=1, lease=15, poll=7), Timing(beat=10, lease=60, poll=9)
    assert project.agreed(store, others) == others
    assert project.ensure(store, "p", mine) == mine
    assert project.ensure(store, "p", others) == Timing(beat=1, lease=15, poll=9)
    assert project.agreed(store, others) == Timing(beat=1, lease=15, poll=9)
    assert [entry.key for entry in store.list(layout.PROJECT)] == [layout.project(1)]
