"""Environment variables: the ones a run's process is given, and the ones hostler reads.

Nobody else reads or writes the environment (`settings.py` aside, for times and sizes).
"""

from __future__ import annotations

import os
from pathlib import Path

# Given to a run's process. docs/scripts.md documents each.
STORE = "HOSTLER_STORE"
SWEEP = "HOSTLER_SWEEP"
RUN = "HOSTLER_RUN"
ATTEMPT = "HOSTLER_ATTEMPT"
RUN_DIR = "HOSTLER_DIR"  # the local folder through which worker and process speak
CHECKPOINT_DIR = "HOSTLER_CHECKPOINT_DIR"
OUTPUT_DIR = "HOSTLER_OUTPUT_DIR"
DATA = "HOSTLER_DATA"
PARAMS = "HOSTLER_PARAMS"  # path of a JSON file with the parameters
MARK = "HOSTLER_MARK"  # the same in all processes of one attempt, and in no others: how strays are found

# Read by hostler itself.
CACHE = "HOSTLER_CACHE"


def cache_dir() -> Path:
    """Where this machine keeps unpacked code, data, environments and run folders."""
    given = os.environ.get(CACHE)
    if given:
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hostler"


def machine_dir() -> Path:
    """Facts of this machine and boot alone (locks, who runs what): never on a shared disk."""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"
    return Path(base) / f"hostler-{os.getuid()}"


def visible_gpus() -> str | None:
    """CUDA_VISIBLE_DEVICES as the site set it: ids, UUIDs or MIG names; None if unset."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def secret(name: str) -> str | None:
    return os.environ.get(name)


def inherited() -> dict[str, str]:
    """A copy of this process's environment, to build a run's from."""
    return dict(os.environ)


def no_color() -> bool:
    return bool(os.environ.get("NO_COLOR"))
