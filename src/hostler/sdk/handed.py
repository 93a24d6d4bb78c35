"""A run that a worker handed to this process: everything passes through the handoff folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import UsageError
from hostler.records.run import handoff, holder
from hostler.records.run.handoff import Handoff
from hostler.sdk.home import DIVERGED, Left

LOOK = 0.1  # seconds between two looks for a stop request


class HandedHome:
    """Ranks after the first leave the talking to rank 0."""

    def __init__(
        self,
        folder: Path,
        of: tuple[str, str, int],
        *,
        rank: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = Handoff(folder)
        self.run, self.sweep, self.attempt = of
        self._rank, self._clock = rank, clock
        self._looked = float("-inf")
        self._reason: str | None = None

    def join(self, **facts: Any) -> None:
        """Tell the worker that this process looks for stop requests itself. One process has the run."""
        if self._rank and (env.board() is None or env.local_rank()):  # else the first of its machine
            return
        before = handoff.read(self.folder.joined) or {}
        if before.get("pid") != os.getpid() and holder.is_gone(before) is False:
            raise UsageError(
                f"start(): process {before['pid']} has started {self.run} already",
                hint="call start() in one process; ranks of one training have RANK and WORLD_SIZE set",
            )
        handoff.write(self.folder.joined, {"pid": os.getpid(), "holder": holder.me(), **facts})

    def params(self) -> dict[str, Any]:
        return handoff.read(self.folder.params) or {}

    def stop_reason(self) -> str | None:
        now = self._clock()
        if self._rank == 0 and self._reason is None and now - self._looked >= LOOK:
            self._looked = now
            asked = handoff.read(self.folder.stop)
            self._reason = str(asked.get("reason") or "stop") if asked is not None else None
        return self._reason

    def finish(self, summary: Mapping[str, Any]) -> None:
        if self._rank == 0:
            handoff.write(self.folder.finished, dict(summary))

    def leave(self, left: Left) -> None:
        """The worker sees the exit code and the log; what those do not say is written down."""
        if left.how == DIVERGED and self._rank == 0:
            handoff.write(self.folder.left, {"how": left.how, "message": left.message})

    def disown(self) -> None:
        """The folder is the parent's."""
