"""Whole-device locks between the workers of one person on one machine.

A lock is held by an open file, so that the kernel gives it back when its worker dies, however it dies.
Children do not inherit it. Shares of one GPU are therefore shares among the runs of one worker.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from hostler import env
from hostler.spec.names import slug


class GpuLocks:
    """The devices this worker holds against other workers."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else env.machine_dir() / "gpus"
        self._held: dict[str, int] = {}
        self._mutex = threading.Lock()

    def acquire(self, device: str) -> bool:
        """Whether the device is now this worker's; asking again for one it holds is fine."""
        with self._mutex:
            if device in self._held:
                return True
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._folder / slug(device, 100), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                return False
            self._held[device] = file
            return True

    def release(self, device: str) -> None:
        with self._mutex:
            file = self._held.pop(device, None)
            if file is not None:
                os.close(file)

    def held(self) -> list[str]:
        with self._mutex:
            return sorted(self._held)

    def close(self) -> None:
        for device in self.held():
            self.release(device)
