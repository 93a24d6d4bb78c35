"""A process that starts a fleet's workers on hosts that were down at its launch, once they answer.

    python -m hostler.fleet.latecomers NOTE [--watched]

It runs on the submitter's machine (`late_hosts.py`). It ends when every host has been back, the note is gone,
or nobody of the fleet is alive; with `--watched`, when its standard input ends.
"""

from __future__ import annotations

import fcntl
import sys
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from hostler import settings
from hostler.backends.base import Named, WorkerInfo
from hostler.backends.project_file import load_project
from hostler.errors import HostlerError
from hostler.fleet import late_hosts
from hostler.fleet.launcher import Launcher, launcher
from hostler.fleet.ready import say
from hostler.frozen import dataclass
from hostler.records.packs.packed_store import open_at
from hostler.records.rows import rows
from hostler.spec.project import find_project
from hostler.spec.states import QUEUED, RUNNING

LOOK = 1.0  # seconds between two tries to wait in the place of another


@dataclass(frozen=True)
class HostCheck:
    """`start`: hosts that are back and have no worker; `wait`: those still away; `over`: nobody is alive."""

    start: frozenset[str] = frozenset()
    wait: frozenset[str] = frozenset()
    over: bool = False


def decide(late: Collection[str], found: Sequence[WorkerInfo], *, watched: bool = False) -> HostCheck:
    """A machine that could not be asked is a worker of its own name that is not alive. `watched`: a person
    looks on, so that hosts are waited for though nobody is alive. Pure."""
    alive = {worker.host for worker in found if worker.alive}
    away = {worker.host for worker in found if not worker.alive and worker.id == worker.host}
    if not alive and not watched:
        return HostCheck(over=True)
    return HostCheck(frozenset(set(late) - away - alive), frozenset(set(late) & away))


def watch(path: Path, viewer: threading.Event | None = None) -> None:
    """Look until nobody waits for these hosts any more. `viewer` is set when who looked on is gone."""
    gone = viewer or threading.Event()
    while (note := late_hosts.read(path)) and not gone.wait(settings.timing().lease / 4):
        root = find_project(Path(note.folder))
        if root is None:
            break
        workers = launcher(load_project(root), note.store, note.fleet)
        try:
            with late_hosts.turn(note.store, note.fleet):
                look = decide(note.hosts, workers.engine.list(workers.fleet), watched=viewer is not None)
                if look.over:
                    return
                late = look.wait if not look.start or _start(workers, look.start) else look.wait | look.start
        except HostlerError as error:  # a host is away again, or the store is: the next look is another try
            say(str(error))
            continue
        if not late:
            break
        if late_hosts.read(path) == note and late != set(note.hosts):
            replace(note, hosts=tuple(sorted(late))).write()
    path.unlink(missing_ok=True)


def _start(workers: Launcher, hosts: frozenset[str]) -> bool:
    """Start workers on these hosts for what waits; False if nothing does now, but runs are under way."""
    found = rows(open_at(workers.url), say=say)
    waiting = [row for row in found if row.state == QUEUED or (row.state == RUNNING and row.stale)]
    if not waiting:
        return not any(row.state == RUNNING for row in found)
    assert isinstance(workers.engine, Named)
    every = {str(host) for host in workers.engine.targets(workers.fleet)}
    only = replace(workers, skip=frozenset(every - hosts), awaits=False)
    only.start([row.sweep for row in waiting], len(waiting))
    return True


def main(words: Sequence[str]) -> int:
    path, viewer = Path(words[0]), _viewer() if late_hosts.WATCHED in words else None
    with open(path.with_suffix(".lock"), "w") as lock:
        while not _is_ours(lock):  # another waits for these hosts already, and reads the note at every look
            if viewer is None or viewer.wait(LOOK):
                return 0
        watch(path, viewer)
    return 0


def _viewer() -> threading.Event:
    """Set when who looks on is gone."""
    gone = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        gone.set()

    threading.Thread(target=wait, name="viewer", daemon=True).start()
    return gone


def _is_ours(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
