"""The home of a run: its folder, stop requests, and the receiver of its outcome.

`handed.py` is a worker's folder; `alone/` is a script that no worker started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hostler.frozen import dataclass
from hostler.records.run.handoff import Handoff

STOPPED = "stopped"
FAILED = "failed"
DIVERGED = "diverged"


@dataclass(frozen=True)
class Left:
    """A run that left before it finished. `saved`: no work would be repeated."""

    how: str  # stopped | failed | diverged
    reason: str = ""  # of the stop request
    message: str = ""
    traceback: str = ""


class Home(Protocol):
    run: str
    sweep: str
    attempt: int
    folder: Handoff

    def stop_reason(self) -> str | None:
        """Why the run should save and leave; None if it should not. Cheap, never waits."""

    def finish(self, summary: Mapping[str, Any]) -> None:
        """The run is done, and its last checkpoint is on the local disk."""

    def leave(self, left: Left) -> None:
        """The process goes, and the run is not finished."""

    def disown(self) -> None:
        """This is a forked child: nothing here is its own."""
