"""The processes of this machine, as the kernel lists them.

A process is named by its number and its start time together: numbers come again, the pair does not (within
one boot). A zombie counts as gone. Linux reads /proc; elsewhere `ps` is asked, which knows less.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hostler.frozen import dataclass

PROC = Path("/proc")
BEING_STARTED = 2.0  # seconds that the kernel may take to load a program
EXITS, SIGNALLED = 0x4, 0x400  # flags of a task
KILL_WAITS = 1 << 8  # among the signals that wait for a task
PS = "pid=,ppid=,pgid=,stat=,rss=,time=,lstart="


@dataclass(frozen=True)
class ProcessRow:
    """A process. `start` is opaque: only its being the same means something."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    start: str
    cpu_seconds: float  # its own and those of children it has waited for
    rss: int
    exits: bool = False  # it only frees its memory, which may take seconds
    killed: bool = False  # a signal ends it, or is about to

    @property
    def alive(self) -> bool:
        return self.state[:1] not in ("Z", "X")

    @property
    def stopped(self) -> bool:
        return self.state[:1] in ("T", "t")


def table() -> dict[int, ProcessRow]:
    """All processes by number, zombies included."""
    if not _has_proc():
        return parse_ps(_ps(["ps", "-axo", PS]))
    rows = (row(int(name)) for name in os.listdir(PROC) if name.isdigit())
    return {process_row.pid: process_row for process_row in rows if process_row is not None}


def row(pid: int) -> ProcessRow | None:
    if not _has_proc():
        return parse_ps(_ps(["ps", "-o", PS, "-p", str(pid)])).get(pid)
    try:
        return parse_stat((PROC / str(pid) / "stat").read_text(errors="replace"))
    except OSError:
        return None


def tree(pid: int) -> list[ProcessRow]:
    """A process, and after it its descendants; nothing if it is not there."""
    leader = row(pid)
    if leader is None:
        return []
    if not _has_proc():
        rows = table()
        return [leader, *(rows[child] for child in below(rows, pid))]
    process_rows, pending = [leader], _children(pid)
    while pending:
        if child := row(pending.pop()):
            process_rows.append(child)
            pending += _children(child.pid)
    return process_rows


def start_of(pid: int) -> str:
    """When the process started; empty if there is none."""
    process_row = row(pid)
    return process_row.start if process_row and process_row.alive else ""


def is_alive(pid: int, start: str) -> bool:
    """Whether the very process of that number and start time is still there."""
    return bool(start) and start_of(pid) == start


def is_leaving(pid: int, start: str) -> bool:
    """Whether that process is gone, or only frees its memory: it shows no command any more."""
    process_row = row(pid)
    return process_row is None or process_row.start != start or not process_row.alive or process_row.exits


def runs(pid: int, words: Sequence[str]) -> bool:
    """Whether the command line of a process ends with these words: a shim may have put others before them."""
    if not _has_proc():
        shown = _ps(["ps", "-ww", "-o", "command=", "-p", str(pid)]).rstrip("\n")
        return shown.endswith(" ".join(["", *words]))
    return _command_line(pid).endswith(b"\0".join([b"", *map(os.fsencode, words), b""]))


def marked(mark: str, name: str) -> set[int]:
    """Processes started with NAME=MARK in their environment, as far as one may look."""
    wanted = f"{name}={mark}".encode()
    return {int(pid) for pid in _listed() if wanted in _environment(pid).split(b"\0")}


def below(rows: Mapping[int, ProcessRow], root: int) -> set[int]:
    """Descendants of a process, by parenthood."""
    children: dict[int, list[int]] = {}
    for process_row in rows.values():
        children.setdefault(process_row.parent, []).append(process_row.pid)
    pending, seen = [root], set[int]()
    while pending:
        for pid in children.get(pending.pop(), []):
            if pid not in seen:
                seen.add(pid)
                pending.append(pid)
    return seen


def parse_stat(text: str) -> ProcessRow | None:
    """A ProcessRow of /proc/PID/stat; the name in it may hold spaces and brackets."""
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if len(fields) < 29:
        return None
    return ProcessRow(
        pid=int(head.partition(" ")[0]),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        state=fields[0],
        start=fields[19],
        cpu_seconds=sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK"),
        rss=int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        exits=bool(int(fields[6]) & EXITS),
        killed=bool(int(fields[6]) & SIGNALLED or int(fields[28]) & KILL_WAITS),
    )


def parse_ps(text: str) -> dict[int, ProcessRow]:
    """Rows of `ps` output; it shows no session that could be compared, so the group stands for it."""
    rows: dict[int, ProcessRow] = {}
    for line in text.splitlines():
        fields = line.split(None, 6)
        if len(fields) == 7 and fields[0].isdigit():
            pid, parent, group = (int(field) for field in fields[:3])
            cpu, rss = _seconds(fields[5]), int(fields[4]) * 1024
            state, start = fields[3], fields[6].strip()
            rows[pid] = ProcessRow(pid, parent, group, group, state, start, cpu, rss, "E" in state)
    return rows


def _seconds(text: str) -> float:
    """[[days-]hours:]minutes:seconds, as ps writes processor time."""
    days, _, clock = text.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part)
    return total + (int(days) * 86400 if days else 0)


def _has_proc() -> bool:
    return (PROC / "self" / "stat").exists()


def _listed() -> list[str]:
    return [name for name in os.listdir(PROC) if name.isdigit()] if _has_proc() else []


def _children(pid: int) -> list[int]:
    """Processes that any thread of this one has started."""
    children: list[int] = []
    try:
        for thread in (PROC / str(pid) / "task").iterdir():
            children += map(int, (thread / "children").read_bytes().split())
    except OSError:  # it has gone, or a kernel that does not tell
        pass
    return children


def _command_line(pid: int) -> bytes:
    """Command of a process, each word with a zero byte after it. The kernel shows nothing of one that is just
    being started, even to the process that started it."""
    until = time.monotonic() + BEING_STARTED
    while True:
        try:
            line = (PROC / str(pid) / "cmdline").read_bytes()
        except OSError:
            return b""
        if line or is_leaving(pid, start_of(pid)) or time.monotonic() > until:
            return line
        time.sleep(0.001)


def _environment(pid: str) -> bytes:
    try:
        return (PROC / pid / "environ").read_bytes()
    except OSError:
        return b""


def _ps(command: list[str]) -> str:
    import subprocess  # where there is no /proc

    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
        ).stdout
    except OSError:
        return ""
