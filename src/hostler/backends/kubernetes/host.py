"""A pod as its worker sees it: its exit code alone tells the Job what to do.

0: nothing is left for the worker, and its place in the Job is done; 1: this node won't do, or has lost the
store; 2: no pod of the Job will, since the store or what was asked for cannot be used. After any other code
the Job starts another pod.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from hostler import env
from hostler.backends.kubernetes import earlier_pods
from hostler.backends.local.host import LocalHost
from hostler.errors import HostlerError, MachineError, StoreUnreachable

UNFIT, UNUSABLE = 1, 2
HOME = "/hostler"  # where hostler itself lies in a pod, and what it keeps there


class KubernetesHost(LocalHost):
    """The Job itself does what other machines are asked to do at their end, and the container is seen to run.
    A pod costs from its worker's first moment."""

    name = "kubernetes"
    comes_with_launch = True

    def place(self, now: Callable[[], float] = time.time) -> tuple[str, int]:
        """Name of the Job and index, as the pod's own name on its network says it: the Job replaces a pod
        when it has failed (`podReplacementPolicy`)."""
        return (os.uname().nodename, int(now())) if "JOB_COMPLETION_INDEX" in env.bare() else ("", 0)

    def job(self) -> str:
        pod = env.bare().get(env.POD, "")
        return f"{self.name} {pod}" if pod else ""

    def fate(self, job: str) -> str:
        """By the status of the pod, if it had this one's index."""
        own, _, pod = job.rpartition(" ")
        return earlier_pods.end_of(pod, HOME) if own == self.name else ""

    def exit_code(self, error: HostlerError) -> int:
        """A store that is away may be back for the next pod."""
        if isinstance(error, StoreUnreachable):
            return error.exit_code
        return UNFIT if isinstance(error, MachineError) else UNUSABLE


def this_host() -> KubernetesHost:
    return KubernetesHost()
