"""A job of a batch scheduler as its worker sees it: knows when its time is over, saves at a signal.

Standard library alone. If a command fails the worker goes on, and the run is safe.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from types import FrameType

from hostler import env
from hostler.backends.local.host import LocalHost
from hostler.frozen import dataclass

PATIENCE = 30.0


@dataclass(frozen=True)
class JobHost(LocalHost):
    job_id: str = ""  # '' outside of a job
    ends: float | None = None  # seconds since 1970 at which the scheduler ends the job

    def seconds_left(self, wall: Callable[[], float] = time.time) -> float | None:
        return None if self.ends is None else self.ends - wall()


def ends() -> float | None:
    """When the time of this job is over, as its script noted it."""
    text = env.inherited().get(env.JOB_ENDS, "")
    return float(text) if text.isdigit() else None


def stop_at(number: int) -> None:
    """Take a signal by which the scheduler announces the end as the one that stops a worker."""

    def stop(_: int, __: FrameType | None) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(number, stop)


def succeeds(words: Sequence[str]) -> bool:
    try:
        return subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
