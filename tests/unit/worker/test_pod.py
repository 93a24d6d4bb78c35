"""What a pod's worker tells the Job by its exit code, and by which address it is reached."""

from __future__ import annotations

import pytest

from hostler.errors import (
    DamagedError,
    HostlerError,
    MachineError,
    MissingError,
    StoreError,
    StoreUnreachable,
    UsageError,
)
from hostler.worker import meeting, pod


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreError("refused"), pod.UNUSABLE),
        (MissingError("no store"), pod.UNUSABLE),
        (UsageError("no such word"), pod.UNUSABLE),
        (DamagedError("not what was written"), pod.UNUSABLE),
        (MachineError("the disk is full"), pod.UNFIT),
        (StoreUnreachable("silent"), 75),
    ],
)
def test_what_ends_a_worker_before_it_begins_decides_about_the_job(error: HostlerError, code: int) -> None:
    assert pod.exit_code(error) == code


def test_the_codes_are_those_that_the_manifest_names() -> None:
    from hostler.backends.kubernetes import manifest

    assert (manifest.UNFIT, manifest.UNUSABLE) == (pod.UNFIT, pod.UNUSABLE)


def test_a_pod_is_reached_by_the_address_that_the_cluster_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = meeting.machine()
    monkeypatch.setenv("HOSTLER_ADDRESS", "127.3.2.1")
    assert meeting.addresses() == ["127.3.2.1"]
    assert meeting.machine() != alone, "two pods of one node are two machines"
