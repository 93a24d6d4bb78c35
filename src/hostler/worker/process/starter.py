"""The starter of a node's processes: `python -I -S starter.py FILE COMMAND…`, FILE with variables of each.

It imports nothing of hostler. If one fails, the others are ended: they would wait for it. Its exit code is
that of the first that failed, which it names, or 0. Signals go to the whole group, so it is deaf to those
itself: who fails after one was told to.
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
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: told.append(number))  # SIG_IGN would be inherited
    started: list[subprocess.Popen[bytes]] = []
    try:
        for own in variables:
            started.append(subprocess.Popen(words[1:], env={**os.environ, **own}))
    except OSError as error:
        print(f"{words[1]}: {error.strerror}", file=sys.stderr)
        _end(started)
        return 127
    first = _first(started)
    if first is None:
        return 0
    _end(started)
    code = started[first].returncode
    if not told:  # last, where the end of a log is looked for
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        print(f"rank {variables[first].get('RANK')} was the first to fail: {how}", file=sys.stderr)
    return code if code > 0 else 128 - code


def _first(started: list[subprocess.Popen[bytes]]) -> int | None:
    """Which one failed; None if all have ended well."""
    while True:
        codes = [process.poll() for process in started]
        failed = next((n for n, code in enumerate(codes) if code), None)
        if failed is not None or None not in codes:
            return failed
        time.sleep(LOOK)


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    """SIGTERM, and after a while the end."""
    processes = [process for process in started if process.poll() is None]
    for one in processes:
        one.terminate()
    deadline = time.monotonic() + PATIENCE
    while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
        time.sleep(LOOK)
    for one in processes:
        if one.poll() is None:
            one.kill()
        one.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
