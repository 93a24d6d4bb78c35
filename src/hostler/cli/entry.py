"""The entry point: answers `hostler --help` from the table of verbs, and leaves the rest to `main.py`."""

from __future__ import annotations

import gc
import io
import os
import sys


def main() -> None:
    gc.set_threshold(200_000, 20, 20)  # neither modules nor rows of runs are garbage: looking costs a tenth
    if sys.argv[1:] in (["--help"], ["-h"]):
        sys.exit(_overview())
    from hostler.cli import main as command  # with click, which takes longer than all of --help

    command.main()


def _overview() -> int:
    from hostler.cli import overview

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # it has letters beyond ASCII
    try:
        print(overview.text(), flush=True)
    except BrokenPipeError:  # a reader that has left (head, less) is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 130
    return 0
