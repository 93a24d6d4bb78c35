"""Notes of the runs on this machine, so that a later worker can end what a dead one left behind.

One small file per run in the machine's own folder, there from the run's start to its end: a worker gives the
file of one run to the next, by another name.
Normally the supervisor ends a dead worker's run; this is for the day when both were killed. Records of
another host, boot or process namespace are never acted on: their numbers mean other processes.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from hostler import env, proctable
from hostler.frozen import dataclass
from hostler.records.run import handoff
from hostler.spec.names import check_part
from hostler.worker.process.group import ProcessGroup
from hostler.worker.process.process import Process

FREE = ".free"  # ends the name of a file that no run has now

_paths: dict[tuple[str, str], str] = {}  # (session, run) → its note, of runs of this process
_free: list[str] = []  # files of this process that no run has
_numbers = count()


@dataclass(frozen=True)
class ProcessScope:
    """Where process numbers have one meaning."""

    host: str
    boot: str
    namespace: str


@dataclass(frozen=True)
class Leftover:
    """A started run: its processes, and the worker that answers for them."""

    session: str
    run: str
    pid: int
    start: str
    mark: str
    supervisor: int
    supervisor_start: str
    worker: int
    worker_start: str
    place: ProcessScope

    @property
    def group(self) -> ProcessGroup:
        return ProcessGroup(self.pid, self.start, self.mark)


@dataclass(frozen=True)
class Killed:
    """A process that a dead worker had left."""

    session: str
    run: str
    pid: int
    start: str


def remember(session: str, run: str, process: Process) -> Leftover:
    """Write down that this worker runs it."""
    record = Leftover(
        session=session,
        run=run,
        pid=process.pid,
        start=process.group.start,
        mark=process.group.mark,
        supervisor=process.supervisor,
        supervisor_start=process.supervisor_start,
        worker=os.getpid(),
        worker_start=_start_of_this(os.getpid()),
        place=here(),
    )
    path, content = _path(session, run), {**vars(record), "place": vars(record.place)}
    _paths[session, run] = path
    if _write_again(path, content):
        return record
    try:
        handoff.write(path, content)
    except FileNotFoundError:
        _folder().mkdir(parents=True, exist_ok=True)
        handoff.write(path, content)
    return record


def _write_again(path: str, content: dict[str, Any]) -> bool:
    """Write a note into a file that no run has, before it gets its name; False if there is none."""
    try:
        free = _free.pop()
        with open(free, "r+b", buffering=0) as file:
            file.write(json.dumps(content).encode())
            file.truncate()
        os.replace(free, path)
    except (IndexError, OSError):
        return False
    return True


def forget(session: str, run: str) -> None:
    """Its processes are gone. A note that a broken disk keeps does no harm: the next worker removes it."""
    path = _paths.pop((session, run), "")
    with suppress(OSError):
        if not path:
            os.unlink(_path(session, run))
            return
        me = os.getpid()
        free = f"{os.path.dirname(path)}/{me}-{_start_of_this(me)}-{next(_numbers)}{FREE}"
        os.replace(path, free)
        _free.append(free)


def close() -> None:
    """Remove the files of this process that no run has."""
    while _free:
        with suppress(OSError):
            os.unlink(_free.pop())


def remove_leftovers() -> list[Killed]:
    """Kill the runs of workers that are gone; what was killed."""
    killed: list[Killed] = []
    for path, record in _records():
        if _is_ours(record) and not proctable.is_alive(record.worker, record.worker_start):
            killed += _end(record)
            path.unlink(missing_ok=True)
        elif record.place.host == here().host and record.place.boot != here().boot:
            path.unlink(missing_ok=True)
    for path in _folder().glob(f"*{FREE}"):
        pid, _, rest = path.name.partition("-")
        if pid.isdigit() and not proctable.is_alive(int(pid), rest.partition("-")[0]):
            path.unlink(missing_ok=True)
    return killed


def orphans() -> list[Leftover]:
    """Runs of workers that are gone, whose processes still live here. Looks only."""
    return [
        record
        for _, record in _records()
        if _is_ours(record)
        and not proctable.is_alive(record.worker, record.worker_start)
        and proctable.is_alive(record.pid, record.start)
    ]


def here() -> ProcessScope:
    return _here(os.getpid())


@lru_cache
def _here(pid: int) -> ProcessScope:
    return ProcessScope(platform.node(), _line("/proc/sys/kernel/random/boot_id"), _link("/proc/self/ns/pid"))


@lru_cache
def _start_of_this(pid: int) -> str:
    return proctable.start_of(pid)


def _end(record: Leftover) -> list[Killed]:
    group = record.group
    ended = group.end()
    if proctable.is_alive(record.supervisor, record.supervisor_start):
        ended += ProcessGroup(record.supervisor, record.supervisor_start, "").end()
    return [Killed(record.session, record.run, row.pid, row.start) for row in ended]


def _is_ours(record: Leftover) -> bool:
    return record.place == here()


def _records() -> Iterator[tuple[Path, Leftover]]:
    for path in sorted(_folder().glob("*.json")):
        try:
            content = json.loads(path.read_text())
            yield path, Leftover(**{**content, "place": ProcessScope(**content["place"])})
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
        ):  # gone meanwhile, or another version's: not ours to judge
            continue


def _folder() -> Path:
    return env.machine_dir() / "runs"


def _path(session: str, run: str) -> str:
    return f"{_folder()}/{check_part(session)}-{check_part(run)}.json"


def _line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
