"""A task of Slurm as its worker sees it: names its job, knows its time limit, goes back into the queue.

All of it is courtesy to people and to the queue: if a command fails the worker goes on, and the run is safe.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hostler import env
from hostler.backends.local.host import LocalHost

PATIENCE = 30.0
NAME_MAX = 120


@dataclass(frozen=True)
class SlurmHost(LocalHost):
    name = "slurm"

    task: str = ""  # 71, or 71_3: an array's last task has the array's own number, so that alone is not exact
    ends: float | None = None  # seconds since 1970 at which Slurm will end the task, if it says so
    cpus: str = ""  # of one node, as the job was given them

    def show(self, run: str) -> None:
        """Show the run in `squeue`."""
        if self.task:
            _quietly(["scontrol", "update", f"JobId={self.task}", f"JobName={run[:NAME_MAX]}"])

    def give_back(self) -> bool | None:
        """Back into the queue; Slurm ends this task by it, so it comes last."""
        return _quietly(["scontrol", "requeue", self.task]) if self.task else None

    def seconds_left(self, wall: Callable[[], float] = time.time) -> float | None:
        """Until the time limit; None if there is none, or nobody knows."""
        if not self.task:
            return None
        if self.ends is not None:
            return self.ends - wall()
        return parse_left(_answer(["squeue", "--noheader", "--jobs", self.task, "--format", "%L"]))

    def on_nodes(self, command: Sequence[str], nodes: int) -> list[str]:
        """srun's words for one worker on each node; one that ends leaves the others alone. Pure."""
        words = ["srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
        words += ["--kill-on-bad-exit=0", "--wait=0", "--label"]
        words += [f"--cpus-per-task={self.cpus}"] if self.cpus else []  # srun does not take it from the job
        return [*words, *command]


def this_host() -> SlurmHost:
    return host_of(env.inherited())


def host_of(variables: Mapping[str, str]) -> SlurmHost:
    """The task that a process with these variables belongs to; without a task outside of Slurm. Pure."""
    array, index = variables.get("SLURM_ARRAY_JOB_ID"), variables.get("SLURM_ARRAY_TASK_ID")
    task = f"{array}_{index}" if array and index else variables.get("SLURM_JOB_ID", "")
    ends = variables.get("SLURM_JOB_END_TIME", "")
    return SlurmHost(task, float(ends) if ends.isdigit() else None, variables.get("SLURM_CPUS_PER_TASK", ""))


def parse_left(text: str) -> float | None:
    """`1-02:03:04`, `2:03:04`, `3:04` or `4`; UNLIMITED, NOT_SET and INVALID mean None."""
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
