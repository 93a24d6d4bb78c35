"""A small file system of its own, that can be full or read-only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Disk:
    """A small file system of its own below a folder store, that can be full or read-only."""

    path: Path

    def fill(self) -> None:
        with suppress_full(), open(self.path / "filler", "ab", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))

    def free(self) -> None:
        self.remount("rw")
        (self.path / "filler").unlink(missing_ok=True)

    def remount(self, how: str) -> bool:
        """False if somebody is writing in this moment."""
        words = ["mount", "-o", f"remount,{how}", str(self.path)]
        return subprocess.run(words, capture_output=True).returncode == 0


@contextmanager
def suppress_full() -> Iterator[None]:
    try:
        yield
    except OSError:
        pass


@contextmanager
def small_disk(path: Path) -> Iterator[Disk | None]:
    """None where this user may not mount one."""
    path.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(path)]
    if sys.platform != "linux" or os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        yield None
        return
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
