"""The far side of an ssh:// store: the folder store of this machine, asked through a channel.

It adds nothing to the folder store's guarantees and takes none away. A file that arrives in parts lies
beside the keys, hidden like every temporary file, until it is whole; each part says where it belongs, so that
one sent twice does no harm. What nobody has finished within a day is removed.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from hostler.confined import is_file
from hostler.errors import StoreError, StoreTooLarge
from hostler.remote import service
from hostler.remote.frames import ByteSource, Frame, Sink
from hostler.remote.service import Handler
from hostler.store.base import TEMPORARY, NotFound
from hostler.store.folder import FolderStore

STALE = 86400.0  # seconds after which the parts of an unfinished upload are removed
ARRIVING = f"{TEMPORARY}arriving-"


def serve(args: Mapping[str, Any], source: ByteSource, sink: Sink) -> None:
    service.serve(Server(str(Path(args["path"]).expanduser())).handlers(), source, sink)


class Server:
    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._store = FolderStore(path)
        self._forget_stale(clock())

    def handlers(self) -> dict[str, Handler]:
        named = {
            "get": self._get,
            "put": self._put,
            "list": self._list,
            "delete": self._delete,
            "part": self._part,
            "place": self._place,
        }
        return {name: _telling(handler) for name, handler in named.items()}

    def _get(self, asked: dict[str, Any], body: bytes) -> Frame:
        blob, size = self._store.get_part(asked["key"], asked["start"], asked["end"])
        return Frame({"etag": blob.etag, "size": size}, blob.data)

    def _put(self, asked: dict[str, Any], body: bytes) -> Frame:
        return Frame({"won": self._store.put(asked["key"], body, if_absent=asked["if_absent"])})

    def _list(self, asked: dict[str, Any], body: bytes) -> Frame:
        rows = self._store.list(asked["prefix"], asked["after"], deep=asked["deep"])
        page = [(row.key, row.size, row.etag, row.modified) for row in islice(rows, asked["limit"])]
        return Frame({}, json.dumps(page, separators=(",", ":")).encode())

    def _delete(self, asked: dict[str, Any], body: bytes) -> Frame:
        self._store.delete(*json.loads(body))
        return Frame()

    def _part(self, asked: dict[str, Any], body: bytes) -> Frame:
        path = self._arriving(asked["token"])
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            at, rest = asked["at"], memoryview(body)
            while rest:
                written = os.pwrite(handle, rest, at)
                at, rest = at + written, rest[written:]
        finally:
            os.close(handle)
        return Frame()

    def _place(self, asked: dict[str, Any], body: bytes) -> Frame:
        path = self._arriving(asked["token"])
        size = _size(path)
        if asked["again"] and size is None:
            return Frame()  # nothing but a placing takes it away: only the answer was lost
        if size != asked["size"]:
            raise StoreError(f"{self._store.url}: {asked['key']} did not arrive whole", "try again")
        self._store.adopt(path, asked["key"])
        return Frame()

    def _arriving(self, token: str) -> Path:
        if not (token.isalnum() and len(token) <= 64):
            raise StoreError(f"{token!r} names no upload")
        return Path(self._store.url, ARRIVING + token)

    def _forget_stale(self, now: float) -> None:
        try:
            names = [name for name in os.listdir(self._store.url) if name.startswith(ARRIVING)]
        except OSError:
            return
        for name in names:
            path = Path(self._store.url, name)
            try:
                if now - path.lstat().st_mtime > STALE:
                    path.unlink()
            except OSError:
                continue  # another server was faster


def _size(path: Path) -> int | None:
    """Size of a file; None if it does not exist."""
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return None
    return facts.st_size if is_file(facts) else None


def _telling(handler: Handler) -> Handler:
    """Absence is an answer; a disk's trouble is the store's."""

    def handle(asked: dict[str, Any], body: bytes) -> Frame:
        try:
            return handler(asked, body)
        except NotFound as error:
            return Frame({"absent": error.message})
        except OSError as error:
            kind = StoreTooLarge if error.errno == errno.EFBIG else StoreError
            raise kind(f"{error.filename or 'the folder'}: {error.strerror}", "check it there") from error

    return handle
