"""A worker that begins while its store does not answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostler.errors import MachineError, StoreUnreachable
from hostler.settings import Timing
from hostler.store import Entry
from hostler.store.memory import MemoryStore
from hostler.worker.session import await_store

TIMING = Timing(wait_min=1.0, wait_max=8.0, storeless=60.0)


class Silent(MemoryStore):
    """Answers at the given look; never, if that is 0."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at, self.looks = at, 0

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        self.looks += 1
        if self.looks != self.at:
            raise StoreUnreachable("it does not answer", "check the network")
        return super().list(prefix, after, deep=deep)


class Time:
    now = 0.0

    def pause(self, seconds: float) -> None:
        self.now += seconds


def test_it_waits_for_a_store_that_comes_back() -> None:
    time, said = Time(), list[str]()
    await_store(Silent(4), TIMING, said.append, lambda: time.now, time.pause)
    assert time.now == 1 + 2 + 4 and len(said) == 3


def test_it_leaves_for_good_when_the_store_stays_away() -> None:
    time = Time()
    with pytest.raises(
        MachineError, match=r"the store has not answered for 1m.*it does not answer"
    ) as caught:
        await_store(Silent(0), TIMING, lambda line: None, lambda: time.now, time.pause)
    assert caught.value.exit_code == 1  # after which no parent starts another
    assert 60 <= time.now < 60 + TIMING.wait_max
