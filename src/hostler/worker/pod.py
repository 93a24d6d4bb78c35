"""The pod that a worker runs in: the Job it belongs to goes by its exit code, and needs to be told no more.

0: nothing is left for it, and its place in the Job is done; 1: this node won't do, or has lost the store;
2: no pod of the Job will, since the store or what was asked for cannot be used. After any other code the Job
starts another pod.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hostler.errors import HostlerError, MachineError, StoreUnreachable

UNFIT, UNUSABLE = 1, 2


@dataclass(frozen=True)
class Pod:
    """What a machine is asked to do at its end, the Job does by itself."""

    def leave(self) -> None:
        """By its exit code."""

    def tear_down(self, done: Callable[[], None]) -> None:
        """The others find out that the launch is over, and leave."""
        done()

    def born(self) -> tuple[str, float]:
        """It is counted from its worker's first moment."""
        return "", 0.0

    def report(self, state: str) -> None:
        """Whoever watches sees the container run."""


def exit_code(error: HostlerError) -> int:
    """Of a worker that could not begin. A store that is away may be back for the next one."""
    if isinstance(error, StoreUnreachable):
        return error.exit_code
    return UNFIT if isinstance(error, MachineError) else UNUSABLE
