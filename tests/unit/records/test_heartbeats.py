"""Heartbeats in the store: beaten, seen, taken away, and aged by the store's clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.errors import DamagedError
from hostler.records import layout
from hostler.records.run import heartbeats
from hostler.records.run.heartbeats import Watch
from hostler.store import Store
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore


def test_every_beat_is_seen_as_a_change(store: Store) -> None:
    seen = []
    for sequence in range(3):
        heartbeats.beat(store, "a", sequence, {"host": "h"})
        seen.append(heartbeats.etags(store)["a"])
    assert len(set(seen)) == 3
    assert (heartbeats.read(store, "a") or {})["sequence"] == 2


def test_a_silenced_worker_has_no_heartbeat(store: Store) -> None:
    heartbeats.beat(store, "a", 1, {})
    heartbeats.silence(store, "a")
    heartbeats.silence(store, "a")
    assert heartbeats.etags(store) == {}
    assert heartbeats.read(store, "a") is None


def test_ages_are_by_the_stores_clock_and_leave_nothing_behind() -> None:
    now = [1000.0]
    store = MemoryStore(clock=lambda: now[0])
    heartbeats.beat(store, "a", 1, {})
    now[0] += 42
    heartbeats.beat(store, "b", 1, {})
    assert heartbeats.ages(store) == {"a": 42.0, "b": 0.0}
    assert {entry.key for entry in store.list("")} == {layout.alive("a"), layout.alive("b")}


def test_watch_over_real_beats_finds_the_one_standing_still(store: Store) -> None:
    watch, stale = Watch(lease=8.0), set[str]()
    heartbeats.beat(store, "dead", 0, {})
    for stamp in range(9):
        heartbeats.beat(store, "live", stamp, {})
        stale = watch.observe(float(stamp), heartbeats.etags(store), ["dead", "live", "unseen"])
    assert stale == {"dead", "unseen"}


def test_who_is_no_longer_asked_about_is_watched_anew() -> None:
    watch = Watch(lease=8.0)
    for stamp in range(5):
        watch.observe(float(stamp), {"a": "1"}, ["a"])
    watch.observe(5.0, {"a": "1"}, [])
    assert [watch.observe(float(stamp), {"a": "1"}, ["a"]) for stamp in range(6, 15)][-2:] == [set(), {"a"}]


def test_sweep_without_beats_asks_no_time_and_writes_nothing(tmp_path: Path) -> None:
    assert heartbeats.ages(FolderStore(tmp_path / "none")) == {}
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("room", [{"gpus": "x"}, {"gpus": 1, "gpu_memory": []}, {"memory": 10**400}, [1]])
def test_heartbeat_with_an_odd_room_is_damaged(store: Store, room: object) -> None:
    heartbeats.beat(store, "a", 1, {"host": "desk", "room": room})
    with pytest.raises(DamagedError, match=layout.alive("a")):
        heartbeats.read(store, "a")
