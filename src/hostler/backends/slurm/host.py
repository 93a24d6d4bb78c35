"""A task of Slurm as its worker sees it: names its job, knows its time limit, goes back into the queue.

All of it is courtesy to people and to the queue: if a command fails the worker goes on, and the run is safe.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from hostler import env
from hostler.backends.local.host import LocalHost
from hostler.backends.slurm.fates import Fates
from hostler.frozen import dataclass

PATIENCE = 30.0
NAME_MAX = 120


@dataclass(frozen=True)
class SlurmHost(LocalHost):
    name = "slurm"

    task: str = ""  # 71, or 71_3: an array's last task has the array's own number, so that alone is not exact
    ends: float | None = None  # seconds since 1970 at which Slurm will end the task, if it says so
    cpus: str = ""  # of one node, as the job was given them
    node: str = "0"  # number of this process among those of its step
    site: str = ""  # name of the cluster
    restarts: int = 0  # how often Slurm has queued the task again
    _fates: Fates = field(default_factory=lambda: Fates(_printed), compare=False, repr=False)

    def place(self) -> tuple[str, int]:
        """Slurm starts a task again when the nodes it had are free, or down."""
        return (f"{self.site} {self.task} {self.node}", self.restarts) if self.task else ("", 0)

    def show(self, run: str) -> None:
        """Show the run in `squeue`."""
        if self.task:
            _quietly(["scontrol", "update", f"JobId={self.task}", f"JobName={run[:NAME_MAX]}"])

    def give_back(self) -> bool | None:
        """Back into the queue; Slurm ends this task by it, so it comes last."""
        return _quietly(["scontrol", "requeue", self.task]) if self.task else None

    def job(self) -> str:
        return f"{self.name} {self.site} {self.task}" if self.task else ""

    def fate(self, job: str) -> str:
        """By Slurm's accounting, or its controller; a job of another cluster is not asked about."""
        own, _, task = job.rpartition(" ")
        return self._fates.of(task) if own == f"{self.name} {self.site}" and task else ""

    def seconds_left(self, wall: Callable[[], float] = time.time) -> float | None:
        """Until the time limit; None if there is none, or nobody knows."""
        if not self.task:
            return None
        if self.ends is not None:
            return self.ends - wall()
        return parse_left(_printed(["squeue", "--noheader", "--jobs", self.task, "--format", "%L"]) or "")

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
    restarts = variables.get("SLURM_RESTART_COUNT", "")
    return SlurmHost(
        task,
        float(ends) if ends.isdigit() else None,
        variables.get("SLURM_CPUS_PER_TASK", ""),
        variables.get("SLURM_PROCID", "0"),
        variables.get("SLURM_CLUSTER_NAME", ""),
        int(restarts) if restarts.isdigit() else 0,
    )


def parse_left(text: str) -> float | None:
    """`1-02:03:04`, `2:03:04`, `3:04` or `4`; UNLIMITED, NOT_SET and INVALID mean None."""
    match = re.fullmatch(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)??(?:(\d{1,9}):)?(\d{1,9})", text.strip())
    if not match:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _quietly(words: Sequence[str]) -> bool:
    try:
        return subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _printed(words: Sequence[str]) -> str | None:
    """Output of a command; None if it failed."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False, text=True)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
