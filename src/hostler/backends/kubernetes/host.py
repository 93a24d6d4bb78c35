"""A pod as its worker sees it: its exit code alone tells the Job what to do.

0: nothing is left for the worker, and its place in the Job is done; 1: this node won't do, or has lost the
store; 2: no pod of the Job will, since the store or what was asked for cannot be used. After any other code
the Job starts another pod.
"""

from __future__ import annotations

from hostler.backends.local.host import LocalHost
from hostler.errors import HostlerError, MachineError, StoreUnreachable

UNFIT, UNUSABLE = 1, 2


class KubernetesHost(LocalHost):
    """The Job itself does what other machines are asked to do at their end, and the container is seen to run.
    A pod costs from its worker's first moment."""

    name = "kubernetes"
    comes_with_launch = True

    def exit_code(self, error: HostlerError) -> int:
        """A store that is away may be back for the next pod."""
        if isinstance(error, StoreUnreachable):
            return error.exit_code
        return UNFIT if isinstance(error, MachineError) else UNUSABLE


def this_host() -> KubernetesHost:
    return KubernetesHost()
