"""Identity of a process: its machine, boot, process namespace and number.

Only for a process of this very place can be told whether it is gone; for any other, its heartbeat tells.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler import proctable


def me() -> dict[str, Any]:
    """This process, as others will know it."""
    pid = os.getpid()
    return {"pid": pid, "start": proctable.start_of(pid), "place": here()}


def here() -> str:
    """This machine, boot and process namespace: within them a process number is unique."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return " ".join((os.uname().nodename, boot, str(Path("/proc/self/ns/pid").readlink())))
    except OSError:
        return os.uname().nodename


def is_gone(record: Mapping[str, Any]) -> bool | None:
    """Whether the process that this record names as its holder is dead; None: nobody can tell from here."""
    holder = record.get("holder") or {}
    if holder.get("place") != here():
        return None
    return not proctable.is_alive(int(holder.get("pid", 0)), str(holder.get("start", "")))
