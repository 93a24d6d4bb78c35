"""Whoever is killed, nothing of a run is left, and nothing else is hurt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostler import proctable
from hostler.worker.process.group import ProcessGroup
from hostler.worker.process.process import Process
from hostler.worker.run import leftovers
from hostler.worker.run.failure import classify
from hostler.worker.run.kinds import POLICY

# A worker that runs N commands; each has a child, a grandchild in a session of its own, and an orphan.
WORKER = """
import os, sys, time
from pathlib import Path
from hostler.worker.run import leftovers
from hostler.worker.process.process import Process
here = Path(sys.argv[1])
for i in range(int(sys.argv[2])):
    folder = here / str(i); folder.mkdir()
    script = "sleep 1001 & setsid sh -c 'sleep 1002; :' & (setsid sleep 1003 &); wait"
    process = Process.start(
        ["sh", "-c", script], cwd=folder, env=dict(os.environ), folder=folder, log=folder / "log"
    )
    record = leftovers.remember("w", f"run{i}", process)
    print(record.pid, record.start, record.mark, record.supervisor, flush=True)
time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "machine"))


@pytest.fixture
def worker(
    tmp_path: Path,
) -> Iterator[Callable[[int], tuple[subprocess.Popen[str], list[ProcessGroup], list[int]]]]:
    started: list[subprocess.Popen[str]] = []

    def begin(count: int) -> tuple[subprocess.Popen[str], list[ProcessGroup], list[int]]:
        popen = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path), str(count)], stdout=subprocess.PIPE, text=True
        )
        started.append(popen)
        assert popen.stdout is not None
        rows = [popen.stdout.readline().split() for _ in range(count)]
        groups = [ProcessGroup(int(row[0]), row[1], row[2]) for row in rows]
        until(lambda: all(len(group.members()) == 6 for group in groups))
        return popen, groups, [int(row[3]) for row in rows]

    yield begin
    for popen in started:
        popen.kill()
        popen.wait()
        assert popen.stdout is not None
        popen.stdout.close()
    leftovers.remove_leftovers()


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.02)


def gone(groups: list[ProcessGroup], pids: list[list[int]]) -> bool:
    return not any(group.members() for group in groups) and not any(
        proctable.start_of(pid) for some in pids for pid in some
    )


def test_when_a_worker_is_killed_all_its_runs_die(worker) -> None:  # type: ignore[no-untyped-def]
    popen, groups, _ = worker(2)
    pids = [list(group.members()) for group in groups]
    popen.kill()
    until(lambda: gone(groups, pids))


def test_killed_supervisors_run_dies_and_the_worker_learns_of_it(tmp_path: Path) -> None:
    process = Process.start(
        ["sh", "-c", "sleep 1001 & setsid sh -c 'sleep 1002; :' & wait"],
        cwd=tmp_path,
        env=dict(os.environ),
        folder=tmp_path,
        log=tmp_path / "log",
    )
    until(lambda: len(process.group.members()) == 5)
    pids = list(process.group.members())
    os.kill(process.supervisor, signal.SIGKILL)
    found = process.wait(60)
    assert found is not None and found.supervisor_lost
    assert POLICY[classify(found, "").kind].retry == "lost"
    assert gone([process.group], [pids])
    process.close()


def test_next_worker_clears_up_after_killed_worker_and_supervisors(worker) -> None:  # type: ignore[no-untyped-def]
    popen, groups, supervisors = worker(2)
    pids = [list(group.members()) for group in groups]
    for pid in (popen.pid, *supervisors):
        os.kill(pid, signal.SIGSTOP)
    for pid in (*supervisors, popen.pid):
        os.kill(pid, signal.SIGKILL)
    popen.wait()
    assert any(group.members() for group in groups), "the kernel alone cleared up: the test shows nothing"
    killed = leftovers.remove_leftovers()
    assert {one.run for one in killed} == {"run0", "run1"}
    assert {one.pid for one in killed} <= {pid for some in pids for pid in some}
    assert gone(groups, pids)
    assert leftovers.remove_leftovers() == []


def test_runs_of_a_living_worker_are_left_alone(worker) -> None:  # type: ignore[no-untyped-def]
    _, groups, _ = worker(1)
    assert leftovers.remove_leftovers() == []
    assert len(groups[0].members()) == 6


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    popen = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield popen
    popen.kill()
    popen.wait()


def record(tmp_path: Path, pid: int, **changes: object) -> Path:
    """A record of a dead worker that names this process, changed a little."""
    place = leftovers.here()
    fields: dict[str, object] = {
        "session": "w",
        "run": "r",
        "pid": pid,
        "start": proctable.start_of(pid),
        "mark": "m",
        "supervisor": pid,
        "supervisor_start": "1",
        "worker": pid,
        "worker_start": "1",
        "place": {"host": place.host, "boot": place.boot, "namespace": place.namespace},
    }
    path = tmp_path / "machine" / f"hostler-{os.getuid()}" / "runs" / "w-r.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**fields, **changes}))
    return path


def test_recycled_process_id_of_another_process_is_not_killed(
    tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    path = record(tmp_path, bystander.pid, start="1")
    assert leftovers.remove_leftovers() == []
    assert bystander.poll() is None and not path.exists()


@pytest.mark.parametrize(("field", "kept"), [("host", True), ("namespace", True), ("boot", False)])
def test_records_of_another_host_namespace_or_boot_are_ignored(
    tmp_path: Path, bystander: subprocess.Popen[bytes], field: str, kept: bool
) -> None:
    place = {**vars(leftovers.here()), field: "other"}
    path = record(tmp_path, bystander.pid, place=place)
    assert leftovers.remove_leftovers() == []
    assert bystander.poll() is None and path.exists() == kept


def test_the_same_record_of_this_machine_is_acted_on(
    tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    path = record(tmp_path, bystander.pid)
    assert [one.pid for one in leftovers.remove_leftovers()] == [bystander.pid]
    assert bystander.wait(60) == -signal.SIGKILL and not path.exists()


def test_a_run_that_ended_is_forgotten(tmp_path: Path) -> None:
    process = Process.start(
        ["true"], cwd=tmp_path, env=dict(os.environ), folder=tmp_path, log=tmp_path / "log"
    )
    leftovers.remember("w", "r", process)
    folder = tmp_path / "machine" / f"hostler-{os.getuid()}" / "runs"
    assert [path.name for path in folder.iterdir()] == ["w-r.json"]
    process.close()
    number = (folder / "w-r.json").stat().st_ino
    leftovers.forget("w", "r")
    leftovers.forget("w", "r")
    assert list(folder.glob("*.json")) == []
    leftovers.remember("w", "another", process)
    assert [(path.name, path.stat().st_ino) for path in folder.iterdir()] == [("w-another.json", number)]
    assert json.loads((folder / "w-another.json").read_text())["run"] == "another"
    leftovers.forget("w", "another")
    leftovers.close()
    assert list(folder.iterdir()) == []


def test_file_of_no_run_goes_once_its_worker_is_dead(tmp_path: Path) -> None:
    folder = record(tmp_path, os.getpid(), start="1").parent
    living, dead = folder / f"{os.getpid()}-{proctable.start_of(os.getpid())}-0.free", folder / "1-1-0.free"
    for path in (living, dead):
        path.write_text("{}")
    leftovers.remove_leftovers()
    assert [path.name for path in folder.iterdir()] == [living.name]


def test_a_damaged_record_is_passed_over(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> None:
    path = record(tmp_path, bystander.pid)
    path.with_name("broken.json").write_text('{"session": ')
    assert len(leftovers.remove_leftovers()) == 1


def test_unknown_leader_has_only_marked_processes_as_members(tmp_path: Path) -> None:
    """Number 0 is the parent of everything: a supervisor killed before its first word must not name it."""
    assert ProcessGroup(0, "", "a mark nobody carries").members(fresh=True) == {}


def test_supervisor_killed_before_its_first_message_ends_normally(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -9 $$\n")
    python.chmod(0o755)
    process = Process.start(
        ["true"], cwd=tmp_path, env={}, folder=tmp_path, log=tmp_path / "log", python=str(python)
    )
    assert process.pid == 0
    exit = process.wait(60)
    process.close()
    assert exit is not None and exit.supervisor_lost
