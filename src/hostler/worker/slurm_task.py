"""What a Slurm task does for itself: names its job, knows its time limit, goes back into the queue.

All of it is courtesy to people and to the queue: if a command fails the worker goes on, and the run is safe.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

PATIENCE = 30.0
NAME_MAX = 120


@dataclass(frozen=True)
class SlurmTask:
    id: str  # 71, or 71_3: the last task of an array has the array's own number, so that alone is not exact
    ends: float | None = None  # seconds since 1970 at which Slurm will end it, if it says so

    def name(self, run: str) -> None:
        """Show the run in `squeue`."""
        _quietly(["scontrol", "update", f"JobId={self.id}", f"JobName={run[:NAME_MAX]}"])

    def requeue(self) -> bool:
        """Back into the queue; Slurm ends this task by it, so it comes last."""
        return _quietly(["scontrol", "requeue", self.id])

    def seconds_left(self, wall: Callable[[], float] = time.time) -> float | None:
        """Until the time limit; None if there is none, or nobody knows."""
        if self.ends is not None:
            return self.ends - wall()
        return parse_left(_answer(["squeue", "--noheader", "--jobs", self.id, "--format", "%L"]))


def this_task(variables: Mapping[str, str]) -> SlurmTask | None:
    """The task this process belongs to; None outside of Slurm."""
    array, index = variables.get("SLURM_ARRAY_JOB_ID"), variables.get("SLURM_ARRAY_TASK_ID")
    job = f"{array}_{index}" if array and index else variables.get("SLURM_JOB_ID")
    ends = variables.get("SLURM_JOB_END_TIME", "")
    return SlurmTask(job, float(ends) if ends.isdigit() else None) if job else None


def parse_left(text: str) -> float | None:
    """`1-02:03:04`, `2:03:04`, `3:04` or `4`; UNLIMITED, NOT_SET and INVALID are no limit."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)??(?:(\d+):)?(\d+)", text.strip())
    if not match:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _quietly(words: Sequence[str]) -> bool:
    try:
        return subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _answer(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False, text=True)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
