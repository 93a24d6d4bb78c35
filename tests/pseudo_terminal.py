"""A command on a terminal of a given width, as if a person were watching and did not type."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

LINES = 50


def on_terminal(
    command: Sequence[str],
    *,
    columns: int = 120,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """(exit code, all that the command wrote) on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    variables = {**(os.environ if env is None else env), "TERM": "xterm"}
    variables.pop("COLUMNS", None)  # the terminal itself says how wide it is
    process = subprocess.Popen(
        command, cwd=cwd, env=variables, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    return process.wait(60), written.decode("utf-8", "replace")
