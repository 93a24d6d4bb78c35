"""Leaves a loop on request: saves, then exits through every `with` and `finally`."""

from __future__ import annotations

NOT_FINISHED = 75  # the exit code that means: not finished, go on with it later
INTERRUPTED = 130


class Leaving(SystemExit):
    """Raised by `run.epochs` and `run.steps` after a stop request, once the state is saved."""

    def __init__(self, reason: str) -> None:
        super().__init__(INTERRUPTED if reason == "interrupt" else NOT_FINISHED)
        self.reason = reason
