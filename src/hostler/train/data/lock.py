"""A lock between processes, for data that is fetched once for all."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """The lock of one that dies is free. Where it does not hold (some network disks) the file is fetched
    twice, and whole each time; where nothing can be written there is nothing to fetch, and no lock."""
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(open(path, "w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass
        yield
