"""The one run that is open in this process, and what becomes of it at a fork and at the process's end."""

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
    """A process has one run at a time; the next begins clean once it is closed."""

    def __init__(self) -> None:
        self._run: Run | None = None
        self._error: BaseException | None = None
        self._hooked = False
        self._count = 0

    @property
    def run(self) -> Run | None:
        return self._run

    def refuse_second(self) -> None:
        if self._run is not None:
            raise UsageError(
                f"start(): {self._run.id} is still open in this process",
                hint="run.finish() ends it, or use `with hostler.start(…) as run:`",
            )

    def count(self) -> int:
        """The number of this start in this process."""
        self._count += 1
        return self._count

    def open(self, run: Run) -> None:
        self._run, self._error = run, None
        if not self._hooked:
            self._hooked = True
            atexit.register(self._at_exit)
            os.register_at_fork(after_in_child=self._in_child)
            self._watch_errors()

    def close(self) -> None:
        self._run = None

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
        if self._run is not None:
            self._run.close(self._error)

    def _in_child(self) -> None:
        if self._run is not None:
            self._run.disown()
            self._run = None


CURRENT = Current()
