"""The end of a process, as its supervisor reports it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hostler.frozen import dataclass

NOT_FOUND, NOT_RUN = 127, 126  # what shells answer


@dataclass(frozen=True)
class Exit:
    """Either a code or a signal; `spawn_error` says why no process came to be."""

    code: int | None = None
    signal: int | None = None
    spawn_error: str = ""
    oom: bool = False  # killed by the kernel for memory, as far as its counters tell
    supervisor_lost: bool = False
    max_rss: int = 0
    cpu_seconds: float = 0.0
    seconds: float = 0.0


def from_report(report: Mapping[str, Any], argv: Sequence[str], cwd: Path, path: str) -> Exit:
    """The Exit of a supervisor's last line; `path` is the PATH the command was looked for on."""
    number = int(report["errno"])
    return Exit(
        code=report["code"] if not number else (NOT_FOUND if number == errno.ENOENT else NOT_RUN),
        signal=report["signal"] if not number else None,
        spawn_error=spawn_error(number, argv[0], cwd, path) if number else "",
        oom=bool(report["oom"]),
        max_rss=int(report["max_rss"]),
        cpu_seconds=float(report["cpu"]),
        seconds=float(report["seconds"]),
    )


def spawn_error(number: int, name: str, cwd: Path, path: str) -> str:
    """Why a command could not be executed, in one line."""
    file = _find(name, cwd, path)
    if number == errno.ENOENT and file is not None:
        return f"{name}: the interpreter its first line names ({_first_line(file)}) does not exist"
    if number == errno.ENOENT:
        return f"command not found: {name}"
    if number == errno.EACCES:
        return f"{name}: {'is a folder' if file and file.is_dir() else 'is not executable (chmod +x)'}"
    if number == errno.ENOEXEC:
        return f"{name}: is not a program of this machine, and has no #! line"
    return f"{name}: {os.strerror(number)}"


def _find(name: str, cwd: Path, path: str) -> Path | None:
    if "/" in name:
        return cwd / name if (cwd / name).exists() else None
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def _first_line(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.readline(200).decode(errors="replace").strip()
    except OSError:
        return "unreadable"
