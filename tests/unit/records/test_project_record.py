"""All workers of a project share one beat and one lease."""

from __future__ import annotations

import pytest

from hostler.records import layout, project
from hostler.records.run.heartbeats import Watch
from hostler.settings import Timing
from hostler.store import Store


def test_the_first_to_come_sets_the_times_for_all(store: Store) -> None:
    mine, others = Timing(beat=1, lease=15, poll=7), Timing(beat=10, lease=60, poll=9)
    assert project.agreed(store, others) == others
    assert project.ensure(store, "p", mine) == mine
    assert project.ensure(store, "p", others) == Timing(beat=1, lease=15, poll=9)
    assert project.agreed(store, others) == Timing(beat=1, lease=15, poll=9)
    assert [entry.key for entry in store.list(layout.PROJECT)] == [layout.project(1)]


@pytest.mark.parametrize(("beat", "lease"), [(20, 60), (10, 30), (0.5, 2)])
def test_beat_is_short_enough_for_watchers_to_see_lost_workers(
    store: Store, beat: float, lease: float
) -> None:
    given = Timing(beat=beat, lease=lease)
    for timing in (project.agreed(store, given), project.ensure(store, "p", given)):
        assert timing.lease == lease
        watch, looks = Watch(lease), int(lease / timing.beat) + 2
        stale = [watch.observe(look * timing.beat * 1.2, {"dead": "same"}, ["dead"]) for look in range(looks)]
        assert stale[-1] == {"dead"}
