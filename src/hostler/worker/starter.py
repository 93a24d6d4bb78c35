"""Starts the processes of one node: `python -I -S starter.py FILE COMMAND…`, FILE with the variables of each.

It imports nothing of hostler. If one fails, the others are ended: they would wait for it. Its exit code is
that of the first that failed, or 0. Signals go to the whole group, so it is deaf to those itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

PATIENCE = 5.0  # seconds for the others to end by themselves
LOOK = 0.02


def main(words: list[str]) -> int:
    with open(words[0]) as file:
        variables: list[dict[str, str]] = json.load(file)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda *_: None)  # not SIG_IGN, which the processes would inherit
    started: list[subprocess.Popen[bytes]] = []
    try:
        for own in variables:
            started.append(subprocess.Popen(words[1:], env={**os.environ, **own}))
    except OSError as error:
        print(f"{words[1]}: {error.strerror}", file=sys.stderr)
        _end(started)
        return 127
    return _wait(started)


def _wait(started: list[subprocess.Popen[bytes]]) -> int:
    while True:
        codes = [one.poll() for one in started]
        failed = next((code for code in codes if code), None)
        if failed is not None:
            _end(started)
            return failed if failed > 0 else 128 - failed
        if None not in codes:
            return 0
        time.sleep(LOOK)


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    """SIGTERM, and after a while the end."""
    left = [one for one in started if one.poll() is None]
    for one in left:
        one.terminate()
    deadline = time.monotonic() + PATIENCE
    while any(one.poll() is None for one in left) and time.monotonic() < deadline:
        time.sleep(LOOK)
    for one in left:
        if one.poll() is None:
            one.kill()
        one.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
