"""A worker of this machine that was started just now counts before its first sign of life."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostler import env
from hostler.backends.base import Plan
from hostler.backends.local.backend import LocalBackend
from hostler.cli.terminal.hints import nobody
from hostler.records.rows import Row
from hostler.spec.project import Fleet
from hostler.store.folder import FolderStore

QUEUED = Row("i", "n", "s", 0, "queued", {})
SLEEPS = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Starts what has a worker's words, and has not come as far as its first heartbeat."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "machine"))
    started: list[int] = []

    def launch(*words: str) -> int:
        plan = Plan(Fleet("here", "local"), ((*SLEEPS, *words),), workers=1)
        started.append(int(LocalBackend().start(plan)[0].id))
        return started[-1]

    yield launch
    for pid in started:
        _end(pid)


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def test_starting_worker_suppresses_the_hint_to_start_one(tmp_path: Path, start: Callable[..., int]) -> None:
    store = FolderStore(tmp_path / "store")
    assert nobody(store, [QUEUED]).startswith("nobody works on 1 queued run: ")
    pid = start(store.url, "--sweep", "s")
    assert nobody(store, [QUEUED]) == ""
    _end(pid)
    assert nobody(store, [QUEUED]).startswith("nobody works on 1 queued run: "), "it died on its way"


def test_only_a_worker_of_this_store_and_sweep_is_starting(start: Callable[..., int]) -> None:
    start("/a", "--sweep", "s", "--sweep", "t")
    start("/b")
    found = [
        LocalBackend().starting(*meant) for meant in (("/a", "t"), ("/a", "u"), ("/b", "u"), ("/c", "s"))
    ]
    assert found == [True, False, True, False]


def test_worker_that_is_silent_for_long_is_not_starting(start: Callable[..., int]) -> None:
    start("/a")
    [record] = (env.machine_dir() / "fleets").glob("*/*.json")
    os.utime(record, (1, 1))
    assert not LocalBackend().starting("/a", "s")
