"""What a reader writes outside its folder, by the interpreter's own audit events.

A hook cannot be taken out again, so one stays and looks only while a reader is watched. An `open` by a path
that is relative does not say relative to what, and may be to an open folder: the reader therefore works in an
empty folder of its own, and what lies there afterwards was written outside, too.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Event → where its paths are among what it tells, and where the open folders that these are relative to.
CHANGES = {
    "os.mkdir": ((0, 2),),
    "os.rename": ((0, 2), (1, 3)),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.symlink": ((1, 2),),
    "os.link": ((0, 2), (1, 3)),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.utime": ((0, 3),),
}
NOWHERE = {os.devnull, "/dev/tty"}


class Watch:
    """The folder of the reader that is watched now, and what it wrote elsewhere."""

    def __init__(self) -> None:
        self._folder = ""
        self.escapes: list[str] = []
        sys.addaudithook(self._hear)

    @contextmanager
    def over(self, folder: Path) -> Iterator[list[str]]:
        """While a reader is at work: what it writes outside this folder."""
        before, bytecode = Path.cwd(), sys.dont_write_bytecode
        empty = tempfile.mkdtemp(prefix="hostler-fuzz-")
        self.escapes = escapes = list[str]()
        os.chdir(empty)
        sys.dont_write_bytecode, self._folder = True, os.path.realpath(folder)
        try:
            yield escapes
        finally:
            self._folder, sys.dont_write_bytecode = "", bytecode
            os.chdir(before)
            escapes += [os.path.join("the working folder", name) for name in os.listdir(empty)]
            shutil.rmtree(empty)

    def _hear(self, event: str, told: tuple[Any, ...]) -> None:
        if not self._folder:
            return
        if event == "open":
            path, _, flags = told
            if flags & WRITES and not isinstance(path, int):
                self._judge(event, path, None, follows=not flags & os.O_NOFOLLOW)
        for at, below in CHANGES.get(event, ()):
            if not isinstance(told[at], int):
                self._judge(event, told[at], None if below is None else told[below], follows=False)

    def _judge(self, event: str, path: Any, below: int | None, *, follows: bool) -> None:
        name = os.fsdecode(path)
        if not Path(name).is_absolute():
            if event == "open" and ".." not in Path(name).parts:
                return
            base = Path.cwd() if below is None or below < 0 else Path(f"/proc/self/fd/{below}").readlink()
            name = os.path.join(base, name)
        real = os.path.realpath(name) if follows else _named(name)
        if name not in NOWHERE and os.path.commonpath([real, self._folder]) != self._folder:
            self.escapes.append(f"{real} ({event})")
            raise PermissionError(f"outside: {real}")


def _named(path: str) -> str:
    """The place of a name itself, which may be a link."""
    folder, name = os.path.split(path.rstrip("/"))
    return os.path.join(os.path.realpath(folder), name)


WATCH = Watch()
