"""The compactor packs runs that ended on this worker into segments, many at a time, from memory.

It reads nothing that it has in memory, and writes one object for a hundred runs. What it holds when it is
killed is packed by whoever finds that the sweep is over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hostler.errors import HostlerError
from hostler.records.run.attempt import Attempt
from hostler.records.series import packing, segments
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.segments import PackedRun
from hostler.store import Store

LONG = 50_000  # points of a curve that is not read back here: it stays where it is
FEW = 10  # fewer than these are not worth an object


@dataclass
class Compactor:
    """All methods may be called from several threads."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _held: dict[str, list[PackedRun]] = field(default_factory=dict)  # by sweep
    _sizes: dict[str, int] = field(default_factory=dict)  # bytes of those
    _numbers: dict[str, int] = field(default_factory=dict)  # of the newest segment known

    def take(self, store: Store, attempt: Attempt, params: Mapping[str, Any], written: MetricWriter) -> None:
        """Take a run whose attempt is over; a run that was given back is ignored."""
        ended = attempt.ended
        if ended is None:
            return
        key = attempt.key
        if written.whole is not None:
            run = segments.packed(key.run, *ended, params, written.whole)
        elif written.position > LONG:
            run = segments.packed(key.run, *ended, params, None)
        else:
            run = packing.pack(store, key, *ended, params)
        with self._lock:
            held = self._held.setdefault(key.sweep, [])
            held.append(run)
            size = self._sizes[key.sweep] = self._sizes.get(key.sweep, 0) + run.size
            if not packing.is_enough(len(held), size):
                return
            del self._held[key.sweep], self._sizes[key.sweep]
        self._write(store, key.sweep, held)

    def holds(self, sweep: str) -> bool:
        """Whether it has so much of a sweep that a flush would write it."""
        with self._lock:
            return len(self._held.get(sweep, ())) >= FEW

    def flush(self, store: Store, sweep: str, say: Callable[[str], None]) -> None:
        """Write what is held of a sweep, if it is not too little."""
        with self._lock:
            held = self._held.pop(sweep, [])
            self._sizes.pop(sweep, None)
        if len(held) >= FEW:
            try:
                self._write(store, sweep, held)
            except HostlerError as error:  # readers find it all in the runs' own objects
                say(f"{sweep}: {error}")

    def finish(self, store: Store, say: Callable[[str], None]) -> None:
        """The worker leaves."""
        for sweep in list(self._held):
            self.flush(store, sweep, say)

    def _write(self, store: Store, sweep: str, held: list[PackedRun]) -> None:
        if sweep not in self._numbers:
            self._numbers[sweep] = segments.newest(store, sweep)
        self._numbers[sweep] = segments.write(store, sweep, held, self._numbers[sweep])
