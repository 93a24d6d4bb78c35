"""A pod's worker that cannot begin tells its Job by its exit code what comes next."""

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
def test_error_before_the_worker_starts_decides_the_jobs_code(error: HostlerError, code: int) -> None:
    assert KubernetesHost().exit_code(error) == code
