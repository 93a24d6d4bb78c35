"""`squeue`, asked once for all fleets: a moment later its answer still holds. It can be asked ahead.

Where commands are typed on this machine the question goes out as soon as it is known that it will be asked,
so that a submission does not wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from hostler.backends.slurm import queue
from hostler.backends.terminal import Ran, Terminal

FRESH = 0.5  # seconds that squeue is not asked again


@dataclass
class Listing:
    terminal: Terminal
    clock: Callable[[], float]
    _answer: tuple[float, Ran] | None = None  # the last, and when it came
    _asking: threading.Thread | None = field(default=None, repr=False)

    def ask_ahead(self) -> None:
        if self.terminal.place == "here" and self._asking is None:
            # nobody waits for it if it is not wanted after all
            self._asking = threading.Thread(target=self._ask, name="squeue", daemon=True)
            self._asking.start()

    def now(self) -> Ran:
        if self._asking is not None:
            self._asking.join()
            self._asking = None
        if self._answer is None or self.clock() - self._answer[0] > FRESH:
            self._ask()
        assert self._answer is not None
        return self._answer[1]

    def forget(self) -> None:
        """Something was queued or ended: the next answer is another."""
        if self._asking is not None:
            self._asking.join()
        self._asking = self._answer = None

    def _ask(self) -> None:
        words = ["squeue", "--noheader", "--user", self.terminal.me(), "--format", queue.FORMAT]
        ran = self.terminal.run(words, "", queue.WHOLE)
        self._answer = (self.clock(), ran)
