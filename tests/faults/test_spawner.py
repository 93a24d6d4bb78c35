"""The process that forks supervisors: what its death, its stopping and its worker's death do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostler import proctable
from hostler.worker.process import process as processes
from hostler.worker.process import spawning
from hostler.worker.process.process import Process

Starter = Callable[..., Process]

# A worker that runs one command, and says who its spawner is.
WORKER = """
import os, sys, time
from pathlib import Path
from hostler.worker.process import spawning
from hostler.worker.process.process import Process
here = Path(sys.argv[1])
process = Process.start(["sleep", "1000"], cwd=here, env=dict(os.environ), folder=here, log=here / "log")
print(spawning.shared().spawner.pid, process.supervisor, process.pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    started: list[Process] = []

    def begin(*argv: str, python: str | None = None) -> Process:
        process = Process.start(
            argv, cwd=tmp_path, env=dict(os.environ), folder=tmp_path, log=tmp_path / "log", python=python
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.close()


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.01)


def the_spawner() -> int:
    return spawning.shared().spawner.pid


@pytest.fixture(autouse=True)
def none_idle() -> Iterator[None]:
    spawning.shared().close()
    yield
    spawning.shared().close()


def code(process: Process) -> int | None:
    found = process.wait(60)
    assert found is not None, "still running"
    return found.code


def test_forked_supervisor_leads_its_own_session(start: Starter) -> None:
    process = start("sleep", "100")
    row = proctable.row(process.supervisor)
    assert row is not None and row.parent == the_spawner()
    assert row.session == row.pid and row.pid in process.group.members()


def test_killed_spawner_harms_no_run_and_the_next_gets_another(start: Starter) -> None:
    running = start("sh", "-c", "sleep 0.3; exit 6")
    first = the_spawner()
    os.kill(first, signal.SIGKILL)
    assert code(start("sh", "-c", "exit 5")) == 5
    assert the_spawner() != first
    assert code(running) == 6


def test_a_stopped_spawner_is_given_up(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start("sh", "-c", "sleep 0.5; exit 6")
    monkeypatch.setattr(spawning, "LATE", 2.0)  # the next one has to answer within it
    os.kill(the_spawner(), signal.SIGSTOP)
    assert code(start("sh", "-c", "exit 5")) == 5
    assert code(running) == 6


def test_kept_supervisor_serves_the_next_run_and_carries_no_mark(start: Starter) -> None:
    first = start("sh", "-c", "exit 5")
    assert code(first) == 5
    assert first.group.members() == {} and proctable.is_alive(first.supervisor, first.supervisor_start)
    second = start("sleep", "100")
    assert second.supervisor == first.supervisor
    assert set(second.group.members()) == {second.pid, second.supervisor}


def test_a_kept_supervisor_that_was_killed_is_replaced(start: Starter) -> None:
    first = start("true")
    assert code(first) == 0
    os.kill(first.supervisor, signal.SIGKILL)
    until(lambda: not proctable.is_alive(first.supervisor, first.supervisor_start))
    second = start("sh", "-c", "exit 5")
    assert code(second) == 5 and second.supervisor != first.supervisor


def test_a_kept_supervisor_that_was_stopped_is_given_up(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start("true")
    assert code(first) == 0
    monkeypatch.setattr(processes, "LATE", 0.2)
    os.kill(first.supervisor, signal.SIGSTOP)
    lost = start("true").wait(60)
    assert lost is not None and lost.supervisor_lost
    assert code(start("true")) == 0


def test_a_new_supervisor_killed_before_its_request_is_replaced(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker may sleep between the two, and find the supervisor dead when it wakes up."""
    fork, killed = spawning.Spawner.fork, list[int]()

    def fork_and_kill(spawner: spawning.Spawner, folder: Path) -> spawning.Supervisor:
        made = fork(spawner, folder)
        if not killed:
            killed.append(made.pid)
            os.kill(made.pid, signal.SIGKILL)
            until(lambda: not proctable.is_alive(made.pid, made.start))
        return made

    monkeypatch.setattr(spawning.Spawner, "fork", fork_and_kill)
    process = start("sh", "-c", "exit 5")
    assert code(process) == 5 and process.supervisor not in killed


def test_supervisor_is_a_program_after_two_killed_spawners(
    start: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, killed = spawning.Spawner._running, list[int]()

    def run_and_kill(spawner: spawning.Spawner, folder: Path) -> socket.socket:
        connection = running(spawner, folder)
        killed.append(spawner.pid)
        os.kill(spawner.pid, signal.SIGKILL)
        until(lambda: (row := proctable.row(killed[-1])) is None or not row.alive)
        return connection

    monkeypatch.setattr(spawning.Spawner, "_running", run_and_kill)
    assert code(start("sh", "-c", "exit 5")) == 5
    assert len(set(killed)) == 2


def test_the_spawner_and_all_its_supervisors_die_with_the_worker(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    pids = [int(word) for word in worker.stdout.readline().split()]
    starts = [proctable.start_of(pid) for pid in pids]
    assert all(starts)
    worker.kill()
    worker.wait()
    worker.stdout.close()
    until(lambda: not any(map(proctable.is_alive, pids, starts)), 60)


def test_run_inherits_no_descriptor_of_the_spawner_or_worker(start: Starter, tmp_path: Path) -> None:
    listing = [sys.executable, "-c", "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1])"]
    assert code(start(*listing)) == 0
    assert (tmp_path / "log").read_text() == "['0', '1', '2']\n"


def test_supervisor_as_a_program_of_its_own_does_the_same(start: Starter) -> None:
    process = start("sh", "-c", "sleep 100 & exit 7", python=sys.executable)
    assert code(process) == 7
    assert process.group.members() == {}
