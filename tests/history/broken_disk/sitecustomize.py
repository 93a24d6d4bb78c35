"""A disk that answers EIO now and then, for every Python process that finds this file on its path.

While the file that BROKEN_DISK names exists, a third of the links, renames and syncs of unfinished files
(`.tmp-…`) below BROKEN_STORE fail with EIO: half of these before they are done, half after.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from typing import Any

FLAG, STORE = os.environ.get("BROKEN_DISK", ""), os.environ.get("BROKEN_STORE", "")


def _breaking(call: Callable[..., Any]) -> Callable[..., Any]:
    def broken(*words: Any, **named: Any) -> Any:
        hit = os.path.exists(FLAG) and random.random() < 1 / 3 and _is_unfinished(words[0], named)
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


def _is_unfinished(thing: Any, named: dict[str, Any]) -> bool:
    """Whether a descriptor, a path, or a name in an open folder is one of the store's unfinished files."""
    if isinstance(thing, int):
        path = _path_of(thing)
    elif "src_dir_fd" in named:
        path = os.path.join(_path_of(named["src_dir_fd"]), os.fspath(thing))
    else:
        path = os.path.abspath(os.fspath(thing))
    return path.startswith(STORE) and os.path.basename(path).startswith(".tmp-")


def _path_of(descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


if FLAG and STORE:
    os.link, os.replace, os.fsync = _breaking(os.link), _breaking(os.replace), _breaking(os.fsync)
