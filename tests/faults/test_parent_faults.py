"""The parent and its worker, really killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostler import proctable

PARENT = """
import sys
from hostler.settings import Timing
from hostler.worker.parent import keep
timing = Timing(restart_min=0.05, restart_max=0.1)
sys.exit(keep([sys.executable, "-c", sys.argv[1], sys.argv[2]], timing=timing))
"""

# Writes its number and arguments to a file of its own, then waits for its parent's death or a signal.
WORKER = """
import os, signal, sys, time
from pathlib import Path
from hostler.worker.parent import watch_parent
here, options = Path(sys.argv[1]), dict(zip(sys.argv[2::2], sys.argv[3::2]))
def leave(*_):
    (here / "left").write_text("x"); os._exit(0)
def note(*_):
    (here / "noted").write_text("x")
signal.signal(signal.SIGTERM, leave); signal.signal(signal.SIGINT, leave); signal.signal(signal.SIGUSR1, note)
def orphaned():
    (here / "orphaned").write_text("x"); os._exit(0)
watch_parent(int(options["--parent-fd"]), orphaned)
text = f"{os.getpid()} {options['--session']} {options.get('--dead', '')}"
(here / "tmp").write_text(text); os.rename(here / "tmp", here / f"started-{time.monotonic_ns():020d}")
if (here / "code").exists():
    os._exit(int((here / "code").read_text()))
time.sleep(1000)
"""


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    popen = subprocess.Popen([sys.executable, "-c", PARENT, WORKER, str(tmp_path)])
    yield popen
    popen.kill()
    popen.wait()


def started(folder: Path, count: int) -> list[list[str]]:
    until(lambda: len(list(folder.glob("started-*"))) >= count)
    return [path.read_text().split(" ") for path in sorted(folder.glob("started-*"))]


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.02)


def test_killed_worker_is_restarted_and_told_which_sessions_are_dead(
    parent: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    for count in (1, 2):
        os.kill(int(started(tmp_path, count)[-1][0]), signal.SIGKILL)
    one, two, three = started(tmp_path, 3)
    assert len({one[1], two[1], three[1]}) == 3
    assert (one[2], two[2], three[2]) == ("", one[1], f"{one[1]},{two[1]}")
    assert parent.poll() is None


def test_a_worker_hears_of_its_parents_death(parent: subprocess.Popen[bytes], tmp_path: Path) -> None:
    pid = int(started(tmp_path, 1)[0][0])
    parent.kill()
    until(lambda: (tmp_path / "orphaned").exists())
    until(lambda: not proctable.start_of(pid))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_request_to_end_is_passed_on_and_restarts_nobody(
    parent: subprocess.Popen[bytes], tmp_path: Path, number: int
) -> None:
    started(tmp_path, 1)
    parent.send_signal(number)
    assert parent.wait(60) == 0
    assert (tmp_path / "left").exists() and len(started(tmp_path, 1)) == 1


def test_a_notice_is_passed_on_and_is_no_end(parent: subprocess.Popen[bytes], tmp_path: Path) -> None:
    started(tmp_path, 1)
    parent.send_signal(signal.SIGUSR1)
    until(lambda: (tmp_path / "noted").exists())
    assert parent.poll() is None


@pytest.mark.parametrize("code", [0, 1, 2])
def test_worker_that_leaves_by_itself_ends_parent_with_its_code(tmp_path: Path, code: int) -> None:
    (tmp_path / "code").write_text(str(code))
    done = subprocess.run([sys.executable, "-c", PARENT, WORKER, str(tmp_path)], check=False, timeout=60)
    assert done.returncode == code and len(started(tmp_path, 1)) == 1


def test_a_worker_that_broke_is_started_again_until_it_leaves(tmp_path: Path) -> None:
    (tmp_path / "code").write_text("70")
    popen = subprocess.Popen([sys.executable, "-c", PARENT, WORKER, str(tmp_path)])
    started(tmp_path, 2)
    (tmp_path / "code").write_text("0")
    assert popen.wait(60) == 0
