"""Hosts that were down at a launch: which get their workers now, and when nobody waits for them any more."""

from __future__ import annotations

import fcntl
from collections.abc import Sequence
from pathlib import Path

import pytest

from hostler.backends.base import Capabilities, Launch, Plan, WorkerInfo
from hostler.fleet import late_hosts, latecomers
from hostler.fleet.late_hosts import Note
from hostler.fleet.latecomers import HostCheck, decide
from hostler.fleet.launcher import Launcher
from hostler.records.sweep import sweeps
from hostler.remote.target import SshTarget, parse
from hostler.spec.job import Job
from hostler.spec.project import Fleet, default_project
from hostler.store import open_store

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


class Lab:
    """A fleet of hosts: whose workers are alive, which hosts a start skips, whether others may look then."""

    capabilities = Capabilities(restarts=True, shares_disk=True)

    def __init__(self, note: Note) -> None:
        self.alive, self.skipped = list[WorkerInfo](), list[frozenset[str]]()
        self.closed = list[bool]()  # to another who would look now and start
        self._turn = note.path.with_suffix(".turn")

    def targets(self, fleet: Fleet) -> Sequence[SshTarget]:
        return [parse("n1"), parse("n3")]

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        return Plan(fleet, (), launch=launch)

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        self.closed.append(self._is_closed())
        return self.alive

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        self.closed.append(self._is_closed())
        assert plan.launch
        self.skipped.append(plan.launch.skip)
        return [WorkerInfo("n3/9", "n3", True)]

    def _is_closed(self) -> bool:
        if not self._turn.exists():
            return False
        with open(self._turn) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Note:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    store = str(tmp_path / "s")
    assert sweeps.submit(open_store(store), Job(name="grid", command=("x",)))
    return Note(store, "lab", str(tmp_path), ("n3",))


def test_host_that_got_workers_meanwhile_gets_none_by_up(note: Note) -> None:
    lab = Lab(note)
    workers = Launcher(default_project(Path(note.folder)), note.store, Fleet("lab", "ssh"), lab)  # type: ignore[arg-type]
    asked = workers.beside_others()
    lab.alive = [WorkerInfo("n3/8", "n3", True)]  # by the process that waits, while a person was asked
    asked.start(["grid"])
    assert lab.skipped == [frozenset({"n3"})] and lab.closed == [False, True, True]


def test_late_host_is_looked_at_and_started_in_one_turn(note: Note, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(note)
    lab.alive = [WORKS]
    workers = Launcher(default_project(Path(note.folder)), note.store, Fleet("lab", "ssh"), lab)  # type: ignore[arg-type]
    for name, replaced in {
        "find_project": lambda folder: folder,
        "load_project": lambda root: None,
        "launcher": lambda *given: workers,
    }.items():
        monkeypatch.setattr(latecomers, name, replaced)
    monkeypatch.setenv("HOSTLER_LEASE", "0.001")
    note.write()
    latecomers.watch(note.path)
    assert lab.skipped == [frozenset({"n1"})] and lab.closed == [True, True]
    assert late_hosts.read(note.path) is None
