"""Following a run whose store is away, and how often a store is looked at."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from hostler.cli.terminal.follow import SOON, follow, pause
from hostler.errors import StoreUnreachable
from hostler.records.run.log import RunKey
from hostler.store.base import Blob, Entry
from hostler.store.memory import MemoryStore


class Away(MemoryStore):
    """Answers nothing."""

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        raise StoreUnreachable("memory: does not answer")

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        raise StoreUnreachable("memory: does not answer")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_leaves_while_the_store_is_away_may_leave(number: signal.Signals) -> None:
    pressing = threading.Timer(0.3, os.kill, (os.getpid(), number))
    pressing.start()
    with pytest.raises(StoreUnreachable, match="could not be asked to stop"):
        follow(Away(), RunKey("s", "0000000-s-abc"))


def test_folder_is_looked_at_often_in_the_beginning() -> None:
    assert pause(0.0, 0.3, folder=True) == SOON
    assert pause(1.0, 0.3, folder=True) == pytest.approx(0.1)
    assert pause(60.0, 0.3, folder=True) == 0.3


def test_bucket_is_looked_at_as_rarely_from_the_beginning() -> None:
    assert pause(0.0, 1.0, folder=False) == 1.0
