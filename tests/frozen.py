"""A process that answers no signal but SIGKILL, as one that hangs in its file system does.

SIGSTOP does not do it: whoever ends a task sends SIGCONT first. A tracer does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

TRACER = """
import ctypes, os, sys
SEIZE, INTERRUPT, ALL = 0x4206, 0x4207, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
for pid in sys.argv[1:]:
    for thread in os.listdir(f"/proc/{pid}/task"):
        for request in (SEIZE, INTERRUPT):
            if libc.ptrace(request, int(thread), None, None):
                sys.exit(os.strerror(ctypes.get_errno()))
print("frozen", flush=True)
try:
    while True:  # a thread that has died is seen by its parent only when the tracer has seen it
        os.waitpid(-1, ALL)
except ChildProcessError:
    pass
"""


@contextmanager
def frozen(pids: Sequence[int]) -> Iterator[None]:
    """They stand still until they are killed, or the block ends."""
    words = [sys.executable, "-c", TRACER, *map(str, pids)]
    tracer = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert tracer.stdout is not None and tracer.stdout.readline() == "frozen\n"
        yield
    finally:
        tracer.kill()
        tracer.communicate()


def processes(*words: str) -> list[int]:
    """Processes whose command line holds all of the words."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if set(words) <= set(_text(path).split("\0"))
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""
