"""A command of preparation, run to its end, its output kept in a file.

It is asked nothing (no input). Its failure is a PrepareError with the last lines it printed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from hostler.errors import PrepareError

LINES = 20  # of its output, shown on failure
TAIL = 16_384  # bytes read back for them


def run(
    command: Sequence[str],
    *,
    what: str,
    cwd: Path,
    environ: Mapping[str, str],
    log: Path | None = None,
) -> None:
    """Run it, output and errors together into log (or a temporary file)."""
    with _own_file(log) if log else tempfile.TemporaryFile() as out:
        code = _exit_code(command, cwd, environ, out)
        if code != 0:
            kept = f"; all of it in {log}" if log else ""
            raise PrepareError(f"{what} failed ({_ended(code)}){kept}:\n{last_lines(out)}")


def _own_file(path: Path) -> IO[bytes]:
    """Empty, and nobody else's to read: what a command prints may hold secrets."""
    path.unlink(missing_ok=True)
    return open(path, "x+b", opener=lambda name, flags: os.open(name, flags, 0o600))


def last_lines(out: IO[bytes], count: int = LINES) -> str:
    """The last lines of an open file."""
    size = out.seek(0, 2)
    out.seek(max(0, size - TAIL))
    lines = out.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-count:]) or "(it printed nothing)"


def _exit_code(command: Sequence[str], cwd: Path, environ: Mapping[str, str], out: IO[bytes]) -> int:
    try:
        return subprocess.run(
            list(command), cwd=cwd, env=dict(environ), stdin=subprocess.DEVNULL, stdout=out, stderr=out
        ).returncode
    except OSError as error:
        out.write(f"{command[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
        return 127


def _ended(code: int) -> str:
    return f"exit {code}" if code >= 0 else f"signal {-code}"
