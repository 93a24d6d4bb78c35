"""The folder remover deletes folders of ended runs in the background, many at once.

Taking a tree of small folders apart costs a run of milliseconds more than all the rest of it, so one
program does it for many. What is left when the worker dies lies in its session's folder, and goes with it.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

GATHER = 0.5  # seconds in which others may come along
MOST = 200  # folders in one command line


@dataclass
class FolderRemover:
    """All methods may be called from several threads. Its thread lives while there is something to do."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _left: list[Path] = field(default_factory=list)
    _thread: threading.Thread | None = None
    _hurry: threading.Event = field(default_factory=threading.Event)

    def remove_soon(self, folder: Path) -> None:
        """Have this folder removed soon."""
        with self._lock:
            self._left.append(folder)
            if self._thread is None:
                self._hurry.clear()
                self._thread = threading.Thread(target=self._work, name="folder-remover", daemon=True)
                self._thread.start()

    def finish(self) -> None:
        """Return when all that was asked for is removed."""
        self._hurry.set()
        thread = self._thread
        if thread:
            thread.join()

    def _work(self) -> None:
        while True:
            self._hurry.wait(GATHER)
            with self._lock:
                folders, self._left = self._left[:MOST], self._left[MOST:]
                if not folders:
                    self._thread = None
                    return
            remove(folders)


def remove(folders: Sequence[Path]) -> None:
    """Remove these trees, as far as that can be done."""
    try:
        subprocess.run(
            ["rm", "-rf", "--", *map(str, folders)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # no such program, or no room for one
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
