"""A folder in memory for played workers, whose threads stand still: the stage does their work at a moment.

Files there never wait for a disk, where the machine has such a folder: thousands of them are made durable.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from staged import Seat

from hostler.attempt.saver import Saver
from hostler.worker.run import surroundings
from hostler.worker.run.meter import Meter
from hostler.worker.run.watch import Watchman

sys.path.insert(0, str(Path(__file__).parents[1] / "history"))  # seeds


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    def keep_at_hand(saver: Saver, *_: object) -> None:
        assert isinstance(saver.target.store, Seat)
        saver.target.store.saver = saver

    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        monkeypatch.setenv("HOSTLER_CACHE", place)
        monkeypatch.setattr(Saver, "start", keep_at_hand)
        monkeypatch.setattr(Watchman, "start", lambda watchman: None)  # the loop asks it, too
        monkeypatch.setattr(Meter, "due", lambda meter: False)  # a played process uses nothing
        monkeypatch.setattr(Meter, "last", lambda meter, exit: {})
        monkeypatch.setattr(surroundings, "capture", lambda *_, **__: {"python": "3"})
        yield Path(place)
