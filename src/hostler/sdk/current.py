"""The runs open in this process; disowned at a fork, closed at the process's end."""

from __future__ import annotations

import atexit
import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from hostler.errors import UsageError

if TYPE_CHECKING:
    from hostler.sdk.run import Run


class Current:
    """A process has one run at a time, unless a worker gave it several; the next begins clean once it is
    closed."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._error: BaseException | None = None
        self._hooked = False
        self._count = 0

    @property
    def run(self) -> Run | None:
        return self._runs[-1] if self._runs else None

    def refuse_second(self) -> None:
        if self._runs:
            raise UsageError(
                f"start(): {self._runs[-1].id} is still open in this process",
                hint="run.finish() ends it, or use `with hostler.start(…) as run:`",
            )

    def count(self) -> int:
        """The number of this start in this process."""
        self._count += 1
        return self._count

    def open(self, run: Run) -> None:
        self._runs, self._error = [*self._runs, run], None
        if not self._hooked:
            self._hooked = True
            atexit.register(self._at_exit)
            os.register_at_fork(after_in_child=self._in_child)
            self._watch_errors()

    def close(self) -> None:
        """Forget those that are closed."""
        self._runs = [run for run in self._runs if not run.closed]

    def _watch_errors(self) -> None:
        """Learn of the error or exit code that ends the process; whoever showed it goes on showing it."""
        before, leave = sys.excepthook, sys.exit

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self._error = error
            before(kind, error, trace)

        def noted(status: Any = None, /) -> NoReturn:
            self._error = SystemExit(status) if status else None
            leave(status)

        sys.excepthook, sys.exit = hook, noted

    def _at_exit(self) -> None:
        for run in list(self._runs):
            run.close(self._error)

    def _in_child(self) -> None:
        for run in self._runs:
            run.disown()
        self._runs = []


CURRENT = Current()
