"""Records of what attempts on this worker run on; shared facts are looked up and written once."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import hostler
from hostler.attempt import nvml
from hostler.attempt.nvml import GPU
from hostler.errors import MachineError
from hostler.records.body import Record
from hostler.records.run import surroundings
from hostler.records.run.attempt import Attempt
from hostler.spec.job import Source, source_facts
from hostler.store import Store
from hostler.worker.claim import memory
from hostler.worker.prepare import packages

FRESH = 1.0  # seconds after which a machine's facts are looked up again


@dataclass(frozen=True)
class Command:
    """Command of an attempt. `hide` covers secrets."""

    exe: str
    argv: Sequence[str]
    source: Source
    hide: Callable[[str], str]
    taken: Record = field(default_factory=dict)  # what it takes from other runs

    def record(self) -> Record:
        command = [self.hide(word) for word in self.argv]
        return {"command": command, **self.taken, "source": source_facts(self.source)}


@dataclass
class Surroundings:
    """All methods may be called from several threads."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sharing: threading.Lock = field(default_factory=threading.Lock)  # the first writes, others wait for it
    _facts: dict[str, tuple[float, Record]] = field(default_factory=dict)
    _shared: dict[str, tuple[Record, str]] = field(default_factory=dict)  # as written, by interpreter

    def write(self, store: Store, attempt: Attempt, command: Command, now: float) -> None:
        """A record of its own, for an attempt that lasts."""
        record = {**self._of(command.exe, now), **command.record()}
        surroundings.write(store, attempt.key.run, attempt.number, record)

    def ran(self, store: Store, command: Command, now: float) -> dict[str, Any]:
        """For the entry that closes an attempt of a moment."""
        facts = self._of(command.exe, now)
        with self._sharing:
            known = self._shared.get(command.exe)
            if known is None or known[0] is not facts:
                same = known is not None and known[0] == facts
                name = known[1] if known and same else surroundings.share(store, facts)
                known = self._shared[command.exe] = facts, name
        return {surroundings.FACTS: known[1], **command.record()}

    def _of(self, exe: str, now: float) -> Record:
        with self._lock:
            at, facts = self._facts.get(exe, (0.0, {}))
            if not facts or now - at >= FRESH:  # newer ones than asked for will do
                facts = _look(exe)
                self._facts[exe] = now, facts
            return facts


def _look(exe: str) -> Record:
    gpus = nvml.read()
    try:
        return capture(exe, gpus.gpus, driver=gpus.driver)
    except (MachineError, OSError) as error:  # a Python that does not answer may not be the one that is used
        return {"problem": str(error)}


def capture(exe: str, gpus: Sequence[GPU] = (), *, driver: str = "") -> dict[str, Any]:
    """Packages, Python, platform, driver, GPUs and host: all that a reader needs to do the run again."""
    interpreter = packages.inspect(exe)
    return {
        "hostler": hostler.__version__,
        "python": {
            "exe": exe,
            "version": interpreter.python,
            "implementation": interpreter.implementation,
            "prefix": interpreter.prefix,
        },
        "packages": dict(sorted(interpreter.packages.items())),
        "platform": interpreter.platform,
        "host": platform.node(),
        "cpus": os.cpu_count() or 0,
        "memory": memory.physical(),
        "driver": driver,
        "gpus": [{"uuid": gpu.uuid, "name": gpu.name, "memory": gpu.memory_total} for gpu in gpus],
    }
