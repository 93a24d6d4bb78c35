"""What a pod's worker tells the Job by its exit code, and by which address it is reached."""

from __future__ import annotations

import pytest

from hostler.backends.kubernetes.host import UNFIT, UNUSABLE, KubernetesHost
from hostler.errors import (
    DamagedError,
    HostlerError,
    MachineError,
    MissingError,
    StoreError,
    StoreUnreachable,
    UsageError,
)
from hostler.records.log import CAP
from hostler.settings import Timing
from hostler.store.memory import MemoryStore
from hostler.worker import meeting
from hostler.worker.conclude import PREEMPTED, STORELESS
from hostler.worker.launch_end import Launched
from hostler.worker.machine_fate import Ended


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreError("refused"), UNUSABLE),
        (MissingError("no store"), UNUSABLE),
        (UsageError("no such word"), UNUSABLE),
        (DamagedError("not what was written"), UNUSABLE),
        (MachineError("the disk is full"), UNFIT),
        (StoreUnreachable("silent"), 75),
    ],
)
def test_what_ends_a_worker_before_it_begins_decides_about_the_job(error: HostlerError, code: int) -> None:
    assert KubernetesHost().exit_code(error) == code


def test_a_pod_is_reached_by_the_address_that_the_cluster_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
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
        (Ended(refused=True), UNFIT),
        (Ended(told=STORELESS), UNFIT),
    ],
)
def test_a_place_in_the_job_is_done_only_if_nothing_was_left_for_its_worker(ended: Ended, code: int) -> None:
    class Over:
        def __init__(self) -> None:
            self.ended = ended

        def fellows(self) -> int:
            return 0

    launched = Launched(KubernetesHost(), MemoryStore(), "gke", 1, Timing(), "", lambda line: None)
    launched._worker = Over()  # type: ignore[assignment]
    assert launched.finish() == code
