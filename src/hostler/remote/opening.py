"""Opens a channel: ssh, a Python new enough, hostler itself if the machine has not got it, the program.

All of it goes through one ssh command, so a shell's slow start-up file is paid once for a channel. The
first Python of version 3.10 or newer is taken. Nothing half-made is left: a machine that won't do says why in
one line.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import threading
import zlib
from collections import deque
from collections.abc import Mapping
from typing import IO, Any

from hostler.errors import HostError, HostlerError, HostUnreachable
from hostler.remote import refusal
from hostler.remote.channel import Channel
from hostler.remote.connection import Connection
from hostler.remote.library_zip import own_zip
from hostler.remote.standalone import standalone

OLDEST = (3, 10)
PATIENCE = 60.0  # seconds for a slow start-up file and a slow disk, after the connection stands
MOST_NOISE = 1 << 20  # bytes a start-up file may print
NAMES = ("python3", *(f"python3.{n}" for n in range(15, 9, -1)), "python")
PLACES = (".local/bin", "miniforge3/bin", "miniconda3/bin", "mambaforge/bin", "anaconda3/bin", ".pyenv/shims")

# One line without a newline, so that any login shell passes it on whole.
_FIND = (
    'm=$1; n=$2; shift 2; o=; for p in "$@" '
    + " ".join(f'"$HOME/{place}/python3"' for place in PLACES)
    + " /opt/conda/bin/python3 /usr/local/bin/python3; do"
    ' q=$(command -v "$p" 2>/dev/null) || continue;'
    f' if "$q" -IS -c "import sys; sys.exit(sys.version_info < {OLDEST})" 2>/dev/null; then'
    ' exec "$q" -uc "import sys; exec(sys.stdin.buffer.read(int(sys.argv[1])))" "$n"; fi;'
    ' o="$o, $q is $("$q" -V 2>&1)"; done;'
    r' printf "\000hostler:%s:python {}%s\n" "$m" "$o"'
)


def open_channel(
    connection: Connection, module: str, args: Mapping[str, Any], *, cache: str | None = None
) -> Channel:
    """A channel to `module.serve(args, …)` on the other machine; HostError or HostUnreachable."""
    mark, boot = secrets.token_hex(8), standalone("hostler.remote.boot").encode()
    process = connection.start(["/bin/sh", "-c", _FIND, "hostler", mark, str(len(boot)), *NAMES])
    told = {"mark": mark, "sha": own_zip().sha, "cache": cache, "module": module, "args": dict(args)}
    errors = _SshErrors(process.stderr)
    limit = threading.Timer(connection.connect + PATIENCE, process.kill)
    limit.daemon = True
    limit.start()
    try:
        _send(process, boot + json.dumps(told).encode() + b"\n")
        facts = _handshake(process, mark, str(connection.target), errors)
    except HostlerError:
        process.kill()
        process.wait()
        raise
    finally:
        limit.cancel()
    return Channel(process, facts)


def _handshake(process: subprocess.Popen[bytes], mark: str, host: str, said: _SshErrors) -> dict[str, Any]:
    while True:
        line = _marked_line(process, mark)
        if line is None:
            raise _ended(process, host, said)
        word, _, rest = line.partition(" ")
        if word == "need":
            data = zlib.compress(own_zip().data, 6)
            _send(process, b"%d\n" % len(data) + data)
            continue
        if word == "python":
            raise _no_python(host, rest)
        facts: dict[str, Any] = json.loads(rest)
        if word == "disk":
            raise HostError(f"{host}: {facts['path']} cannot be written: {facts['why']}", _DISK)
        if word == "refused":
            raise HostError(f"{host}: {facts['why']}", _CACHE)
        return facts


_CACHE = "chmod -R go-w it there if all in it is yours; else remove it, or name another folder under `cache:`"
_DISK = "free some space or fix the rights there, or name another folder under `cache:`"


def _no_python(host: str, rest: str) -> HostError:
    oldest = f"{OLDEST[0]}.{OLDEST[1]}"
    found = rest.removeprefix("{}").removeprefix(", ").strip()
    if not found:
        return HostError(f"{host} has no Python on its PATH", f"install Python {oldest} or newer there")
    return HostError(
        f"{host} has no Python {oldest} or newer: {found}", "install one there, for example miniforge"
    )


def _marked_line(process: subprocess.Popen[bytes], mark: str) -> str | None:
    """The next line of ours; whatever a start-up file printed before it is passed over."""
    assert process.stdout is not None
    wanted, noise = f"\0hostler:{mark}:".encode(), 0
    while noise < MOST_NOISE:
        line = process.stdout.readline()
        if not line:
            return None
        _, data, rest = line.partition(wanted)
        if data:
            return rest.decode("utf-8", "replace").rstrip("\n")
        noise += len(line)
    return None


def _send(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Send the program; a failure shows as a missing answer."""
    assert process.stdin is not None
    try:
        process.stdin.write(data)
        process.stdin.flush()
    except OSError:
        pass


def _ended(process: subprocess.Popen[bytes], host: str, said: _SshErrors) -> HostError:
    try:
        code: int | None = process.wait(2.0)
    except subprocess.TimeoutExpired:
        process.kill()
        return HostError(f"{host}: its login shell prints without end", f"ssh {host} true")
    if code is not None and code < 0:
        return HostUnreachable(
            f"{host} did not get ready in time", "check its load, and whether its home folder is mounted"
        )
    return refusal.read(host, said.text(), code)


class _SshErrors:
    """The last of what the ssh program says, read so that it never waits for us."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._lines: deque[bytes] = deque(maxlen=60)
        self._thread = threading.Thread(target=self._read, args=(pipe,), name="ssh says", daemon=True)
        self._thread.start()

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in iter(lambda: pipe.readline(4096), b""):
                self._lines.append(line)

    def text(self) -> str:
        self._thread.join(1.0)
        return b"".join(self._lines).decode("utf-8", "replace")
