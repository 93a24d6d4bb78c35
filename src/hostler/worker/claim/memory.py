"""Memory limit of this worker's runs: the machine's, or less in a container or a batch job.

The kernel kills a process that exceeds its control group, and in a container all others with it. Groups
lie in each other, each with its own limit; what a container cannot see of them binds it no closer.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hostler import env
from hostler.spec.names import slug

GROUPS, OWN, FACTS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"), Path("/proc/meminfo")
_USED = {"memory.max": "memory.current", "memory.limit_in_bytes": "memory.usage_in_bytes"}


def allowed(groups: Path = GROUPS, own: Path = OWN) -> int:
    """Bytes; 0 if nothing tells."""
    told = [physical(), *_limits(groups, own)]
    return min((limit for limit in told if limit > 0), default=0)


def available(groups: Path = GROUPS, own: Path = OWN, facts: Path = FACTS) -> int | None:
    """Bytes that nothing uses now, or only as a cache; None if nothing tells."""
    told = [int(line.split()[1]) * 1024 for line in _text(facts).splitlines() if line[:13] == "MemAvailable:"]
    for group, name in _groups(groups, own):
        limit, used = (_text(group / one).strip() for one in (name, _USED[name]))
        if limit.isdigit() and used.isdigit():
            told.append(int(limit) - int(used) + _cached(group / "memory.stat"))
    return min(told, default=None)


def _cached(stat: Path) -> int:
    """Pages of files that a group can drop at once."""
    rows = dict(line.split()[:2] for line in _text(stat).splitlines() if len(line.split()) == 2)
    return int(rows.get("total_inactive_file") or rows.get("inactive_file") or 0)


def binding(groups: Path = GROUPS, own: Path = OWN) -> str:
    """Names the memory that this worker's runs share: equal for those that are bounded by the same limit."""
    found = [(int(text), str(group)) for group, text in _told(groups, own) if text.isdigit()]
    limit, group = min(found, default=(0, ""))
    return group if group and limit < (physical() or limit + 1) else ""


def physical() -> int:
    """Bytes of this machine; 0 if it does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def _limits(groups: Path, own: Path) -> Iterator[int]:
    """Limits of this process's group and of its parents, by either version of the kernel's interface."""
    return (int(text) for _, text in _told(groups, own) if text.isdigit())  # else it is `max`


def _told(groups: Path, own: Path) -> Iterator[tuple[Path, str]]:
    return ((group, _text(group / name).strip()) for group, name in _groups(groups, own))


def _groups(groups: Path, own: Path) -> Iterator[tuple[Path, str]]:
    """Folders of this process's group and of its parents, and the file there that has the limit."""
    for line in _text(own).splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = groups / "memory" if controllers else groups
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        group = Path(place.lstrip("/"))
        for inner in (group, *group.parents):
            yield base / inner, name


class Promises:
    """Memory that the runs of each worker on this machine may still grow by: one file each, locked while its
    worker lives. A worker writes first and reads then, so that two never count on the same memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: int | None = None
        self._name, self._written = "", -1

    def write(self, amount: int) -> None:
        if self._file is None and not amount:
            return
        if self._file is None:
            self._open()
        if amount != self._written and self._file is not None:
            os.pwrite(self._file, b"%20d" % amount, 0)
            self._written = amount

    def others(self) -> int:
        """The sum of other workers'; files of those that are gone are removed."""
        total = 0
        for path in self._place().glob("*"):
            if path.name == self._name:
                continue
            with suppress(OSError), open(path, "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    path.unlink()
                except BlockingIOError:
                    total += int(file.read(20) or 0)
        return total

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            (self._place() / self._name).unlink(missing_ok=True)
            self._file = None

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = env.machine_dir() / "memory" / (slug(binding()) or "all")
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    def _open(self) -> None:
        name = secrets.token_hex(8)
        place = self._place()
        file = os.open(place.parent / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.replace(place.parent / name, place / name)  # not before it is locked: others remove what is not
        self._file, self._name = file, name


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
