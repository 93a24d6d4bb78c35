"""`squeue`, asked once for all fleets: a moment later its answer still holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hostler.backends.slurm import queue
from hostler.backends.terminal import Ran, Terminal

FRESH = 0.5  # seconds that squeue is not asked again


@dataclass
class Listing:
    terminal: Terminal
    clock: Callable[[], float]
    _answer: tuple[float, Ran] | None = None  # the last, and when it came

    def now(self) -> Ran:
        if self._answer is None or self.clock() - self._answer[0] > FRESH:
            words = ["squeue", "--noheader", "--user", self.terminal.me(), "--format", queue.FORMAT]
            self._answer = (self.clock(), self.terminal.run(words, "", queue.WHOLE))
        return self._answer[1]

    def forget(self) -> None:
        """Something was queued or ended: the next answer is another."""
        self._answer = None
