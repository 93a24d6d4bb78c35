"""The board on which a run's ranks leave notes: the run's folder, or a server at rank 0.

Ranks of one machine share a folder. Those of several speak through the board that the leader's worker lends
them (`worker/gang/board.py`), where a rank is there as long as its line is open. Notes are small, and the
last one of a name counts.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from hostler import env
from hostler.errors import MachineError
from hostler.records.run import handoff, holder

CONNECT = 30.0  # seconds in which the board must have answered
AGAIN = 0.2
SHOWN = 60.0  # seconds in which a note must hang on the board

Note = Mapping[str, Any]


class Board(Protocol):
    shared: bool  # whether the ranks see each other's files, too

    def post(self, name: str, value: Note) -> None: ...

    def post_surely(self, name: str, value: Note) -> None:
        """It hangs there when this returns: whoever posts it may end."""

    def read(self, name: str) -> Note | None: ...

    def clear(self, name: str) -> None: ...

    def alive(self, name: str) -> bool:
        """Whether who posted it is still there."""


class FolderBoard:
    """Notes as files; a name is a path below the folder. What has not changed is not read again."""

    shared = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[tuple[int, int], Note | None]] = {}

    def post_surely(self, name: str, value: Note) -> None:
        self.post(name, value)

    def post(self, name: str, value: Note) -> None:
        path = self._path(name)
        path.parent.mkdir(exist_ok=True)
        handoff.write(path, {**value, "holder": holder.me()} if name.startswith("ranks/") else dict(value))

    def read(self, name: str) -> Note | None:
        try:
            facts = os.stat(self._path(name))
        except FileNotFoundError:
            return None
        stamp = (facts.st_mtime_ns, facts.st_ino)
        if self._known.get(name, ((0, 0), None))[0] != stamp:
            self._known[name] = (stamp, handoff.read(self._path(name)))
        return self._known[name][1]

    def clear(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def alive(self, name: str) -> bool:
        record = handoff.read(self._path(name))
        return record is not None and holder.is_gone(record) is False

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


class WireBoard:
    """Notes on the leader's board; a thread keeps a copy of them here."""

    shared = False

    def __init__(self, address: str, port: int, secret: str, rank: int) -> None:
        self._line = _connect(address, port)
        self._notes: dict[str, Note] = {}
        self._listeners: dict[str, Callable[[Note], None]] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._send({"secret": secret, "rank": rank})
        threading.Thread(target=self._listen, name="hostler-board", daemon=True).start()

    def post(self, name: str, value: Note) -> None:
        self._send({"name": name, "value": dict(value)})

    def post_surely(self, name: str, value: Note) -> None:
        """A line that is closed with something unread in it takes along what was sent: wait for the echo."""
        shown, deadline = threading.Event(), time.monotonic() + SHOWN
        self._listeners[name] = lambda note: shown.set()
        self.post(name, value)
        while not self._closed and not shown.wait(AGAIN):
            if time.monotonic() > deadline:
                raise MachineError(
                    f"rank 0's machine has not accepted {name} within {SHOWN:.0f} s",
                    hint="check whether that machine or the network is overloaded",
                )
        self._listeners.pop(name, None)

    def read(self, name: str) -> Note | None:
        return self._notes.get(name)

    def clear(self, name: str) -> None:
        self._send({"name": name, "value": None})

    def listen(self, name: str, then: Callable[[Note], None]) -> None:
        """Call `then` with every note of this name, at once, in the thread that reads."""
        self._listeners[name] = then
        if (known := self._notes.get(name)) is not None:
            then(known)

    def alive(self, name: str) -> bool:
        """Ranks are, while their line is open; the rest while the board is."""
        rank = name.removeprefix("ranks/")
        return not self._closed and (f"rank-{rank}" if rank.isdigit() else name) in self._notes

    def _send(self, note: Note) -> None:
        with self._lock:
            try:
                self._line.sendall(json.dumps(note).encode() + b"\n")
            except OSError:
                self._closed = True  # the leader is gone: its worker, or ours, ends this process

    def _listen(self) -> None:
        try:
            with self._line.makefile("rb") as lines:
                for line in lines:
                    note = json.loads(line)
                    if note["value"] is None:
                        self._notes.pop(note["name"], None)
                    else:
                        self._notes[note["name"]] = note["value"]
                        self._listeners.get(note["name"], _nobody)(note["value"])
        except (OSError, ValueError):
            pass
        self._closed = True


def _nobody(note: Note) -> None:
    """Nobody waits for it."""


def board_of(folder: Path, rank: int) -> Board:
    """The board of this run's ranks."""
    given = env.board()
    return WireBoard(*given, rank) if given else FolderBoard(folder)


def _connect(address: str, port: int) -> socket.socket:
    deadline = time.monotonic() + CONNECT
    while True:
        try:
            line = socket.create_connection((address, port), timeout=CONNECT)
            line.settimeout(None)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return line
        except OSError as error:
            if time.monotonic() > deadline:
                raise MachineError(
                    f"rank 0's machine does not answer at {address}:{port}: {error}",
                    hint="check the firewall between the machines; HOSTLER_PORTS names open ports",
                ) from None
            time.sleep(AGAIN)
