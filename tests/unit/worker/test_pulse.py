"""A worker's heartbeat when its store does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hostler.errors import StoreError, StoreGone, StoreUnreachable
from hostler.settings import Timing
from hostler.store.memory import MemoryStore
from hostler.worker.pulse import Pulse, patience
from hostler.worker.run.conclude import UNREACHABLE

TIMING = Timing(lease=60.0, storeless=1800.0)
AWAY, GONE = StoreUnreachable("no answer"), StoreGone("the bucket does not exist")


class Held:
    attempt: Any = SimpleNamespace(key=SimpleNamespace(run="r"))

    def __init__(self) -> None:
        self.told = list[str]()

    def stop(self, reason: str) -> None:
        self.told.append(reason)

    def fence(self) -> None: ...

    def facts(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("error", "silent", "stopped", "lost"),
    [
        (AWAY, 59.0, False, False),
        (AWAY, 60.0, True, False),
        (AWAY, 1800.0, True, True),
        (GONE, 59.0, False, False),
        (GONE, 60.0, True, True),
    ],
)
def test_runs_stop_after_a_lease_and_the_worker_later(
    error: StoreError, silent: float, stopped: bool, lost: bool
) -> None:
    now, held = 100.0, Held()
    pulse = Pulse(MemoryStore(), "s", TIMING, {}, lambda: now)
    pulse.hold(held)
    now += silent
    pulse._unanswered(error)
    assert held.told == [UNREACHABLE] * stopped
    assert pulse.lost is (error if lost else None)


def test_nobody_leaves_before_a_lease_whatever_is_set() -> None:
    assert patience(AWAY, Timing(lease=60.0, storeless=1.0)) == 60.0
