"""A disk that answers EIO now and then, for every Python process that finds this file on its path.

While the file that BROKEN_DISK names exists, a third of the links, renames and syncs of files below
BROKEN_FOLDER whose names begin with BROKEN_NAMES fail with EIO: half of these before they are done, half
after. (Unfinished files of a folder store are named `.tmp-…`.)
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from typing import Any

FLAG, FOLDER = os.environ.get("BROKEN_DISK", ""), os.environ.get("BROKEN_FOLDER", "")
NAMES = os.environ.get("BROKEN_NAMES", "")


def _breaking(call: Callable[..., Any]) -> Callable[..., Any]:
    def broken(*words: Any, **named: Any) -> Any:
        hit = os.path.exists(FLAG) and random.random() < 1 / 3 and _is_broken(words[0], named)
        if hit:
            _note()
        if hit and random.random() < 0.5:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        answer = call(*words, **named)
        if hit:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return answer

    return broken


def _note() -> None:
    """So that whoever broke the disk sees that somebody has met it."""
    with open(f"{FLAG}-met", "w"):
        pass


def _is_broken(thing: Any, named: dict[str, Any]) -> bool:
    """Whether a descriptor, a path, or a name in an open folder is a file on the broken disk."""
    if isinstance(thing, int):
        path = _path_of(thing)
    elif "src_dir_fd" in named:
        path = os.path.join(_path_of(named["src_dir_fd"]), os.fspath(thing))
    else:
        path = os.path.abspath(os.fspath(thing))
    return path.startswith(FOLDER) and os.path.basename(path).startswith(NAMES)


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


if FLAG and FOLDER:
    os.link, os.replace, os.fsync = _breaking(os.link), _breaking(os.replace), _breaking(os.fsync)
