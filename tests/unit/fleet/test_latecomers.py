"""Hosts that were down at a launch: which get their workers now, and when nobody waits for them any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.backends.base import WorkerInfo
from hostler.fleet import late_hosts
from hostler.fleet.late_hosts import Note
from hostler.fleet.latecomers import HostCheck, decide

WORKS, AWAY = WorkerInfo("n1/7", "n1", True), WorkerInfo("n3", "n3", False, "n3 cannot be reached")


@pytest.mark.parametrize(
    ("late", "found", "look"),
    [
        (["n2", "n3"], [WORKS, AWAY], HostCheck(frozenset({"n2"}), frozenset({"n3"}))),
        (["n3"], [WORKS], HostCheck(frozenset({"n3"}))),
        (["n3"], [WORKS, WorkerInfo("n3/9", "n3", True)], HostCheck()),
        (["n3"], [WORKS, WorkerInfo("n3/9", "n3", False)], HostCheck(frozenset({"n3"}))),
        (["n3"], [AWAY], HostCheck(over=True)),
        (["n3"], [], HostCheck(over=True)),
    ],
    ids=["one-back", "back", "has-one", "ended-there", "fleet-gone", "nobody"],
)
def test_host_that_is_back_without_worker_gets_one(
    late: list[str], found: list[WorkerInfo], look: HostCheck
) -> None:
    assert decide(late, found) == look


def test_watched_host_gets_workers_though_nobody_is_alive() -> None:
    assert decide(["n2", "n3"], [AWAY], watched=True) == HostCheck(frozenset({"n2"}), frozenset({"n3"}))


def test_note_is_read_until_its_fleet_is_taken_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    note = Note("s3://b/runs", "lab", "/home/me/p", ("n2", "n3"))
    note.write()
    assert late_hosts.read(note.path) == note and note.path.parent.stat().st_mode & 0o077 == 0
    late_hosts.forget("s3://b/other", "lab")
    assert late_hosts.read(note.path) == note
    late_hosts.forget("s3://b/runs", "lab")
    assert late_hosts.read(note.path) is None
    note.path.write_text("{")
    assert late_hosts.read(note.path) is None
