"""What a trivial run costs its worker in files, folders, fsyncs, threads and listings.

Counted is the difference between a sweep of 5 and one of 25 in a real worker on a folder store: what a worker
does once, and what comes by the second, is in both.
"""

from __future__ import annotations

import builtins
import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler.worker.claim.slots import Offer
from worker_world import FAST, World

FEW, MANY = 5, 25
RARE = replace(FAST, poll=5.0, beat=60.0, lease=600.0, flush=60.0, flush_max=60.0, usage=60.0)
ONE_BY_ONE = Offer(cpus=2, memory=1 << 40, slots=1)
# A claim and an end: a file each, which is flushed and whose folder is. Their temporary names and the end's
# copy: a link each. Besides, segments and folders of the store that many runs share, and what the folders of
# up to four runs make, where the next ones begin before these are let go of.
BOUNDS = {
    "new file": 3.2,
    "fsync": 4.8,
    "link": 3.4,
    "folder asked for": 2.6,
    "thread": 1.1,  # its own
    "store's folders listed": 0.9,
    "own folders listed": 13,  # has it left anything: while it began, at its end, for the next run
}


class Counted:
    """Calls of this process by kind, while it holds."""

    def __init__(self, patch: pytest.MonkeyPatch, store: Path) -> None:
        self.counts: Counter[str] = Counter()
        self._patch, self._store = patch, str(store)
        self._count(os, "fsync", lambda *_: "fsync")
        self._count(os, "link", lambda *_: "link")
        self._count(os, "mkdir", lambda *_: "folder asked for")
        self._count(threading.Thread, "start", lambda *_: "thread")
        self._count(os, "open", lambda path, flags, *_: _is_new(path) if flags & os.O_CREAT else "")
        self._count(builtins, "open", lambda path, mode="r", *_: _is_new(path) if mode[0] in "wxa" else "")
        self._count(os, "listdir", self._listed)
        self._count(os, "scandir", self._listed)

    def _listed(self, place: Any = ".") -> str:
        path = os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else os.fspath(place)
        return "store's folders listed" if path.startswith(self._store) else "own folders listed"

    def _count(self, place: Any, name: str, kind: Callable[..., str]) -> None:
        inner = getattr(place, name)

        def counted(*words: Any, **named: Any) -> Any:
            self.counts[kind(*words)] += 1
            return inner(*words, **named)

        self._patch.setattr(place, name, counted)


def _is_new(path: Any) -> str:
    return "" if os.path.exists(path) else "new file"


def counted(folder: Path, runs: int, patch: pytest.MonkeyPatch) -> Counter[str]:
    world = World(folder, timing=RARE, offer=ONE_BY_ONE)
    job = world.submit(runs=[{"n": n} for n in range(runs)], command=("true",))
    with patch.context() as own:
        counts = Counted(own, folder / "store").counts
        assert world.work() == 0
    assert {world.state(job, n).state for n in range(runs)} == {"done"}
    return counts


def test_trivial_run_makes_two_files_and_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = counted(tmp_path / "few", FEW, monkeypatch)
    many = counted(tmp_path / "many", MANY, monkeypatch)
    each = {kind: (many[kind] - few[kind]) / (MANY - FEW) for kind in BOUNDS}
    assert not {kind: n for kind, n in each.items() if n > BOUNDS[kind]}, each
    assert each["new file"] >= 2 and each["fsync"] >= 4 and each["thread"] > 0.5, each  # it does count
