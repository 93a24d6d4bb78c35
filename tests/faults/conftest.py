"""Broken disks for the tests of faults."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers

sys.path.insert(0, str(Path(__file__).parents[1] / "history"))  # seeds, recorder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of one megabyte."""
    disk = tmp_path / "small disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if sys.platform != "linux" or os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        servers.missing("mounting a small file system needs root on Linux")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)
