"""Environment variables: the ones a run's process is given, and the ones hostler reads.

Nobody else reads or writes the environment (`settings.py` aside, for times and sizes).
"""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

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


def without_prefixes(*prefixes: str) -> dict[str, str]:
    """This environment less the variables that begin so."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


def no_color() -> bool:
    return bool(os.environ.get("NO_COLOR"))


def host() -> str:
    return socket.gethostname()


def store_url() -> str | None:
    """The store named by the environment: a user's choice, or the one a run belongs to."""
    return os.environ.get(STORE)


def for_git(url: str, token: str | None) -> dict[str, str]:
    """This environment for one call of git that asks nobody and shows the token to that host alone.

    The token is neither an argument, which any user of the machine could list, nor written to a file.
    """
    found = {**inherited(), "GIT_TERMINAL_PROMPT": "0"}
    parts = urlsplit(url)
    if token and parts.scheme in ("http", "https"):
        n = int(found.get("GIT_CONFIG_COUNT") or 0)
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        found["GIT_CONFIG_COUNT"] = str(n + 1)
        found[f"GIT_CONFIG_KEY_{n}"] = f"http.{parts.scheme}://{parts.netloc}/.extraHeader"
        found[f"GIT_CONFIG_VALUE_{n}"] = f"Authorization: Basic {basic}"
    return found


def gcs_emulator() -> str | None:
    """Where Google's storage clients are told to go instead of the real service."""
    return os.environ.get("STORAGE_EMULATOR_HOST")


def metadata_server() -> str | None:
    """An emulated metadata server, which gives out tokens."""
    return os.environ.get("GCE_METADATA_HOST")
