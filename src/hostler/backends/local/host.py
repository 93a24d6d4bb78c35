"""A machine that its platform neither announces anything to nor takes away: this one, or any reached by ssh.

It is also the base of other hosts, which change what differs on their platform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hostler.errors import HostlerError, UsageError


class LocalHost:
    name = "local"
    comes_with_launch = False
    again = 0

    def place(self) -> tuple[str, int]:
        return "", 0

    def watch(self, on_notice: Callable[[], None]) -> None:
        """The machine stays."""

    def seconds_left(self) -> float | None:
        return None

    def show(self, run: str) -> None:
        """Its users look at `hostler status`."""

    def give_back(self) -> bool | None:
        return None

    def on_nodes(self, command: Sequence[str], nodes: int) -> list[str]:
        raise UsageError(
            f"--nodes {nodes}: this machine is a single node", hint="start a worker on each of the machines"
        )

    def born(self) -> tuple[str, float]:
        return "", 0.0

    def report(self, state: str) -> None:
        """Its workers are seen by their processes."""

    def job(self) -> str:
        return ""

    def fate(self, job: str) -> str:
        return ""

    def leave(self) -> None:
        """The machine stays when its worker has left."""

    def grow(self, workers: int, most: int) -> int | None:
        return None

    def enlarge(self, size: int, hourly: float, *, instead: bool = False) -> str:
        return ""

    def tear_down(self, settled: Callable[[], None]) -> None:
        settled()

    def exit_code(self, error: HostlerError) -> int:
        return error.exit_code


def this_host() -> LocalHost:
    return LocalHost()
