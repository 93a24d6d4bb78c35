"""The temporary folders of tests in memory, as far as this machine has it.

A store in a folder makes all that it writes durable, which takes a disk milliseconds each time: in a suite of
ten thousand tests that is minutes in which processors idle. The tests see a mount of their own in the place
of pytest's folder, which is gone with the last process that sees it. What fails is run again without it.
"""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NEEDED = 8 << 30  # bytes that have to be available; half of what is may be used
KEPT = ["-o", "tmp_path_retention_policy=failed"]  # pytest: the folder of a test that passed goes at once
MOUNTED = 'mount -t tmpfs -o "mode=0700,size=$0" tmpfs "$1" && shift && exec "$@"'


def pytests_folder() -> Path:
    return Path(tempfile.gettempdir(), f"pytest-of-{getpass.getuser()}")


def within(folder: Path, available: int) -> list[str]:
    """Words to put before a command that shall find this folder in memory; none where that cannot be."""
    if available < NEEDED or not shutil.which("unshare") or _is_needed(folder):
        return []
    folder.mkdir(mode=0o700, exist_ok=True)
    words = ["unshare", "--mount", "sh", "-c", MOUNTED, str(available // 2), str(folder)]
    tried = subprocess.run([*words, "true"], capture_output=True)  # needs root
    return [] if tried.returncode else words


def _is_needed(folder: Path) -> bool:
    """Whether what is run lies in it, and would be hidden."""
    return any(
        Path(place).resolve().is_relative_to(folder.resolve()) for place in (Path.cwd(), sys.prefix, __file__)
    )


def available() -> int:
    """Bytes of memory that processes can have without swapping; 0 where nothing tells."""
    told = Path("/proc/meminfo")
    found = re.search(r"^MemAvailable: +(\d+) kB$", told.read_text(), re.MULTILINE) if told.exists() else None
    return int(found[1]) << 10 if found else 0
