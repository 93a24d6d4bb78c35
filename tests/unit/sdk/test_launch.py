"""The processes that a training starts on all devices of its machine, run as programs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostler import proctable
from hostler.errors import MachineError
from hostler.sdk.ranks import launch

PROGRAM = """
import os, sys, time
from hostler.sdk.ranks import launch
if not launch.joined():
    sys.exit(launch.launched(int(sys.argv[1])))
rank = int(os.environ["RANK"])
{code}
"""


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts ranks that run this code; none of them outlives its test."""
    started: list[subprocess.Popen[str]] = []

    def begin(code: str, count: int = 3) -> subprocess.Popen[str]:
        (tmp_path / "ranks.py").write_text(PROGRAM.format(code=code))
        words = [sys.executable, "-X", "utf8", "ranks.py", str(count)]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        started.append(subprocess.Popen(words, cwd=tmp_path, text=True, **pipes))
        return started[-1]

    yield begin
    for one in started:
        one.kill()
        one.communicate()


def test_each_rank_is_the_same_program_with_its_own_variables(start: Start) -> None:
    code = (
        "os.write(1, f'{rank} {os.environ[\"WORLD_SIZE\"]} {sys.argv[1]} {sys.flags.utf8_mode}\\n'.encode())"
    )
    said, _ = start(code).communicate(timeout=60)
    assert sorted(said.splitlines()) == ["0 3 3 1", "1 3 3 1", "2 3 3 1"]


def test_rank_that_fails_first_ends_the_others_with_its_code(start: Start) -> None:
    begun = start("sys.exit(7) if rank == 1 else time.sleep(600)")
    said, _ = begun.communicate(timeout=60)
    assert begun.returncode == 7 and said.splitlines() == [
        "hostler: rank 1 was the first to fail: exit code 7"
    ]


def test_signal_reaches_rank_zero_once_and_is_not_a_failure(start: Start) -> None:
    code = """
import signal

def told(*given):
    os.write(1, f"told {rank}\\n".encode())
    if rank == 0:
        sys.exit(75)

signal.signal(signal.SIGTERM, told)
os.write(1, b"here\\n")
while True:
    time.sleep(0.05)
"""
    begun = start(code, 2)
    assert begun.stdout is not None and [begun.stdout.readline() for _ in range(2)] == ["here\n"] * 2
    begun.send_signal(signal.SIGTERM)
    said, _ = begun.communicate(timeout=60)
    assert begun.returncode == 75 and "first to fail" not in said
    assert said.splitlines()[0] == "told 0" and said.count("told 0") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's word")
def test_no_rank_outlives_the_process_that_started_it(start: Start) -> None:
    begun = start("os.write(1, b'here\\n')\ntime.sleep(600)", 2)
    assert begun.stdout is not None and [begun.stdout.readline() for _ in range(2)] == ["here\n"] * 2
    ranks = [row.pid for row in proctable.tree(begun.pid) if row.pid != begun.pid]
    begun.kill()
    begun.wait(60)
    end = time.monotonic() + 60
    while any((row := proctable.row(pid)) is not None and row.alive for pid in ranks):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert len(ranks) == 2


def test_rank_without_its_parent_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not launch.joined()
    monkeypatch.setenv("HOSTLER_LAUNCHER", "1")
    monkeypatch.setattr(launch.os, "setpgid", lambda *given: None)
    monkeypatch.setattr(launch.os, "getppid", lambda: 2)
    monkeypatch.setattr(launch.sys, "platform", "another")
    with pytest.raises(MachineError, match="the process that started this rank has ended"):
        launch.joined()
