"""Notes of hosts that were down when their fleet was started, and the process that waits for them.

A note is a private file of this machine. The process (`latecomers.py`) holds its lock: one at a time works.
It and a launch start workers in turns: a host that is back does not get them from both. The launch starts it,
and so does whoever watches the store (`hostler status --watch`, `hostler ui`): then hosts are waited for
though nobody of the fleet is alive. `hostler down` removes the note, and so ends it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from hostler import env
from hostler.frozen import dataclass
from hostler.private import own_folder

PROGRAM = "hostler.fleet.latecomers"
WATCHED = "--watched"
LOOK = 5.0  # seconds between two looks for new notes


@dataclass(frozen=True)
class Note:
    store: str
    fleet: str
    folder: str  # of the project
    hosts: tuple[str, ...]

    @property
    def path(self) -> Path:
        name = hashlib.sha256(f"{self.store} {self.fleet}".encode()).hexdigest()[:24]
        return _folder() / f"{name}.json"

    def write(self) -> None:
        own_folder(_folder())
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(self)))
        fresh.replace(self.path)


def read(path: Path) -> Note | None:
    """None if it is gone: all hosts are back, or the fleet was taken down."""
    try:
        found = json.loads(path.read_text())
        return Note(**{**found, "hosts": tuple(found["hosts"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def forget(store: str, fleet: str) -> None:
    """Nobody waits for hosts of this fleet any more."""
    Note(store, fleet, "", ()).path.unlink(missing_ok=True)


@contextmanager
def turn(store: str, fleet: str) -> Iterator[None]:
    """Alone on this machine in the block: who looks where workers are, and starts those that are missing,
    does both before another one looks."""
    path = Note(store, fleet, "", ()).path.with_suffix(".turn")
    own_folder(path.parent)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def await_hosts(note: Note) -> None:
    """Leave a process behind that starts workers on these hosts once they answer."""
    note.write()
    _start([str(note.path)], subprocess.DEVNULL)


@contextmanager
def awaited(store: str) -> Iterator[None]:
    """Have late hosts of all fleets of a store waited for within the block, even if nobody is alive; those of
    a fleet that is started meanwhile, too."""
    over = threading.Event()
    looks = threading.Thread(target=_attend, args=(store, over), name="late-hosts", daemon=True)
    looks.start()
    try:
        yield
    finally:
        over.set()
        looks.join()


def _attend(store: str, over: threading.Event) -> None:
    """A process for each note, until `over` is set."""
    waiting = dict[Path, subprocess.Popen[bytes]]()
    with ExitStack() as stack:
        while True:
            for path in _notes():
                note, known = read(path), waiting.get(path)
                if note and note.store == store and (known is None or known.poll() is not None):
                    process = waiting[path] = _start([str(path), WATCHED], subprocess.PIPE)
                    assert process.stdin
                    stack.callback(process.wait)
                    stack.enter_context(
                        process.stdin
                    )  # it ends when this is closed, however this process ends
            if over.wait(LOOK):
                return


def _start(words: Sequence[str], stdin: int) -> subprocess.Popen[bytes]:
    env.cache_dir().mkdir(parents=True, exist_ok=True)
    with open(env.cache_dir() / "latecomers.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", PROGRAM, *words],
            stdin=stdin,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=env.inherited(),
        )


def _notes() -> list[Path]:
    with suppress(OSError):
        return sorted(_folder().glob("*.json"))
    return []


def _folder() -> Path:
    return env.state_dir() / "late-hosts"
