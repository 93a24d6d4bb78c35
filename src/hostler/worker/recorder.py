"""Writes down what one attempt runs on, beside the run: nothing waits for it until the run is over."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hostler.errors import HostlerError, StoreError
from hostler.records.body import Record


class Recorder:
    """`look` takes its time (it asks the run's Python for its packages); `write` may fail for a while."""

    def __init__(self, look: Callable[[], Record], write: Callable[[Record], object]) -> None:
        self._look, self._write = look, write
        self._record: Record | None = None  # seen, not yet written
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """What could not be written before; raises if it still cannot be."""
        self._thread.join()
        if self._record is not None:
            self._write(self._record)
            self._record = None

    def _run(self) -> None:
        try:
            self._record = self._look()
        except (HostlerError, OSError) as error:
            self._record = {"problem": str(error)}
        try:
            self._write(self._record)
            self._record = None
        except StoreError:
            pass  # it waits for finish
