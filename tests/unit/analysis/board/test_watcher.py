"""The thread that looks, with a store that refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.analysis.board import live
from hostler.analysis.board import watcher as watching
from hostler.analysis.board.watcher import Watcher
from hostler.errors import StoreError
from hostler.records import layout
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore
from seen_world import gallery


class ReadOnly(FolderStore):
    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        raise StoreError("permission denied")

    def delete(self, *keys: str) -> None:
        raise StoreError("permission denied")


class Closed(FolderStore):
    def list(self, prefix: str, after: str = "", *, deep: bool = True):  # type: ignore[no-untyped-def, override]
        raise StoreError("permission denied", hint="fix the rights")


def test_read_only_store_is_shown_and_known_as_such(tmp_path: Path) -> None:
    gallery(tmp_path / "store")
    watcher = Watcher(ReadOnly(tmp_path / "store"), near=True)
    watcher.enter()
    watcher.start()
    assert watcher.ready.wait(20)
    watcher.stop()  # the look that has begun is taken to its end
    watcher.leave()
    assert len(watcher.live.sweeps["cifar-grid"].rows) == 36
    assert not watcher.writable
    assert watcher.live.trouble == ""


def test_a_store_without_the_right_to_read_is_said(tmp_path: Path) -> None:
    watcher = Watcher(Closed(tmp_path), near=True)
    watcher.start()
    assert watcher.ready.wait(20)
    watcher.stop()
    assert "permission denied" in watcher.live.trouble
    assert "fix the rights" in watcher.live.trouble


def test_interest_is_shown_while_somebody_looks_and_withdrawn_after(tmp_path: Path) -> None:
    seen = gallery(tmp_path / "store")
    watcher = Watcher(seen.store, near=True)
    watcher.start()
    assert watcher.ready.wait(20)
    assert not any(seen.store.list(layout.interest()))
    watcher.enter()
    for _ in range(200):
        if any(seen.store.list(layout.interest())):
            break
        watcher.ready.wait(0.05)
        watcher._over.wait(0.05)
    assert any(seen.store.list(layout.interest()))
    watcher.leave()
    watcher.stop()
    assert not any(seen.store.list(layout.interest()))


def test_whoever_looks_where_nothing_is_leaves_nothing_there(tmp_path: Path) -> None:
    watcher = Watcher(FolderStore(tmp_path / "none"), near=True)
    watcher.enter()
    watcher.start()
    assert watcher.ready.wait(20)
    watcher.stop()
    watcher.leave()
    assert not (tmp_path / "none").exists()


def test_look_gives_way_to_requests_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "GIVEN", 0.05)
    found = Watcher(MemoryStore(), near=True, clock=lambda: 100.0)
    found._give_way()
    assert found._given == 0.0  # nobody asks
    found.notice()
    found._give_way()
    assert found._given == pytest.approx(0.05, abs=watching.STEP)


def test_reading_waits_for_a_loading_server_and_its_first_request() -> None:
    now = 100.0
    found = Watcher(MemoryStore(), near=True, clock=lambda: now)
    assert not found._may_wait()
    found.loading = True
    now += 1000
    assert found._may_wait()
    found.opened()
    now += watching.OPENING
    found.notice()
    assert found._may_wait()  # a page is being opened
    now += watching.QUIET
    assert not found._may_wait()


def test_store_is_read_before_the_server_is_loaded(tmp_path: Path) -> None:
    seen = gallery(tmp_path / "store")
    with watching.watching(seen.store) as watcher:
        assert watcher.ready.wait(20)
        assert watcher.has_begun("cifar-grid")
        watcher.start()  # as the server does: it has begun
    assert watcher.over


def test_look_gives_way_only_once_a_screen_is_full() -> None:
    store = MemoryStore()
    job = Job(name="s", command=("x",), runs=tuple({"lr": n} for n in range(260)))
    sweeps.submit(store, job)
    given: list[int] = []
    found = live.LiveStore(store, lambda: 0.0, give_way=lambda: given.append(len(found.sweeps["s"].rows)))
    found.look()
    assert given == list(range(live.FIRST, 251, live.STRIDE))
    assert len(found.sweeps["s"].rows) == 260
