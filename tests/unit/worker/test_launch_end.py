"""The exit code of a worker whose machine came with its launch, and the address it is reached by."""

from __future__ import annotations

from typing import Any

import pytest

from hostler.backends.local.host import LocalHost
from hostler.records.run.log import CAP
from hostler.settings import Timing
from hostler.store.memory import MemoryStore
from hostler.worker.gang import meeting
from hostler.worker.launch_end import Launched
from hostler.worker.machine_fate import Ended
from hostler.worker.run.conclude import PREEMPTED, STORELESS


def test_pod_is_reached_by_the_address_the_cluster_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = meeting.machine()
    monkeypatch.setenv("HOSTLER_ADDRESS", "127.3.2.1")
    assert meeting.addresses() == ["127.3.2.1"]
    assert meeting.machine() != alone, "two pods of one node are two machines"


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (Ended(looked=True), 0),
        (Ended(told=CAP), 0),
        (Ended(told=PREEMPTED), 75),
        (Ended(refused=True), 1),
        (Ended(told=STORELESS), 1),
    ],
)
def test_job_index_is_done_only_if_nothing_waits_for_it(ended: Ended, code: int) -> None:
    class Over:
        def __init__(self) -> None:
            self.ended = ended

        def fellows(self) -> int:
            return 0

    launched = Launched(LocalHost(), MemoryStore(), "gke", 1, Timing(), "", lambda line: None)
    launched._worker = Over()  # type: ignore[assignment]
    assert launched.finish() == code


@pytest.mark.parametrize(("left", "waited"), [(12.0, 7.0), (None, 60.0), (1000.0, 60.0), (3.0, 0.0)])
def test_wait_for_others_never_passes_the_deadline(left: float | None, waited: float) -> None:
    class Capped:
        ended = Ended(told=CAP)

        def fellows(self) -> int:
            return 1

    now = [100.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    given: dict[str, Any] = {"clock": lambda: now[0], "pause": pause}
    launched = Launched(LocalHost(), MemoryStore(), "gke", 1, Timing(), say=lambda line: None, **given)
    launched.ends = None if left is None else 100.0 + left
    launched._worker = Capped()  # type: ignore[assignment]
    assert launched.finish() == 0 and now[0] == 100.0 + waited
