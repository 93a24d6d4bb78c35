"""The far side of a mirrored folder: knows what was sent to it, and whether anybody has changed that since.

Only what was sent is ever removed. A folder that holds something and was never mirrored to is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler import env
from hostler.errors import HostError
from hostler.remote import service
from hostler.remote.frames import ByteSource, Frame, Sink

FORMAT = 1


def serve(args: Mapping[str, Any], source: ByteSource, sink: Sink) -> None:
    mirrored = Mirrored(Path(args["path"]).expanduser().absolute())
    service.serve(
        {"state": mirrored.state, "remove": mirrored.remove, "settle": mirrored.settle}, source, sink
    )


class Mirrored:
    def __init__(self, root: Path) -> None:
        self._root = root
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self._record = env.cache_dir() / "mirrored" / f"{name}.json"

    def state(self, asked: dict[str, Any], body: bytes) -> Frame:
        """Its token, what is not as it was sent, and all that was sent if the asker knows another token."""
        record = self._read()
        if record is None:
            taken = self._root.is_dir() and any(self._root.iterdir())
            self._make()
            zstd = shutil.which("zstd") is not None
            return Frame({"token": "", "foreign": taken, "zstd": zstd}, b"{}")
        sent = record["sent"]
        drifted = [name for name, was in sent.items() if _own_stamp(f"{self._root}/{name}") != was[1]]
        known = {} if record["token"] == asked["token"] else {name: was[0] for name, was in sent.items()}
        head = {"token": record["token"], "foreign": False, "drifted": drifted}
        return Frame(head, json.dumps(known).encode())

    def remove(self, asked: dict[str, Any], body: bytes) -> Frame:
        """Remove what is gone at home, deepest first; a folder that holds others' files stays."""
        known = (self._read() or {"sent": {}})["sent"]
        for name in sorted(json.loads(body), reverse=True):
            path = self._root / name
            inside = os.path.realpath(path.parent) + "/"
            if name not in known or not inside.startswith(os.path.realpath(self._root) + "/"):
                continue
            try:
                if path.is_dir() and not path.is_symlink():
                    path.rmdir()
                else:
                    path.unlink()
            except OSError:
                continue
        return Frame()

    def settle(self, asked: dict[str, Any], body: bytes) -> Frame:
        """Remember what is there now: {name: stamp at home}."""
        sent = {name: [stamp, _own_stamp(f"{self._root}/{name}")] for name, stamp in json.loads(body).items()}
        missing = [name for name, was in sent.items() if was[1] is None]
        if missing:
            raise HostError(
                f"files that did not arrive: {len(missing)}, {missing[0]!r} among them", "is the disk full?"
            )
        self._record.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._record.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"format": FORMAT, "token": asked["token"], "sent": sent}))
        fresh.replace(self._record)
        return Frame()

    def _make(self) -> None:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HostError(
                f"{self._root} cannot be made: {error.strerror}", "--to another folder"
            ) from error

    def _read(self) -> dict[str, Any] | None:
        try:
            record = json.loads(self._record.read_text())
        except (OSError, ValueError):
            return None
        is_ours = isinstance(record, dict) and record.get("format") == FORMAT and self._root.is_dir()
        return record if is_ours else None


def _own_stamp(path: str) -> list[int] | None:
    """A value that changes with the content; None if it does not exist. A folder exists or not."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return [0] if found.st_mode & 0o170000 == 0o040000 else [found.st_size, found.st_mtime_ns]
