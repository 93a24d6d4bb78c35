"""What becomes of a VM when its worker has ended."""

from __future__ import annotations

import pytest

from hostler.records.run.log import CAP
from hostler.worker.machine_fate import AGAIN, CLOSE, LEAVE, STAY, Ended, fate
from hostler.worker.run.conclude import LEAVING, PREEMPTED, STORELESS


@pytest.mark.parametrize(
    ("ended", "then"),
    [
        (Ended(told=PREEMPTED), STAY),
        (Ended(told=PREEMPTED, looked=True, alone=True), STAY),
        (Ended(told=LEAVING), STAY),
        (Ended(told=CAP), CLOSE),
        (Ended(told=STORELESS), LEAVE),
        (Ended(late=True), CLOSE),
        (Ended(refused=True), LEAVE),
        (Ended(), AGAIN),
        (Ended(looked=True), LEAVE),
        (Ended(looked=True, alone=True), CLOSE),
    ],
)
def test_vm_is_removed_only_by_a_worker_that_is_sure(ended: Ended, then: str) -> None:
    assert fate(ended) == then
