"""The store in a folder of another machine: ssh://[user@]host[:port]/path, over one connection.

Requests of all threads share it and wait for nobody else's. A cut connection is made again by the one
retry loop; what was asked when it was cut is asked again, which is harmless: a create is settled by its own
bytes, a part of a file belongs to one place. An upload goes on where it was cut.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from hostler.errors import HostError, HostUnreachable, StoreError, StoreTooLarge, StoreUnreachable
from hostler.remote.channel import Channel, Cut
from hostler.remote.connection import Connection
from hostler.remote.frames import LARGEST, Frame
from hostler.remote.opening import open_channel
from hostler.remote.target import split_store
from hostler.store.base import Blob, Entry, NotFound, arriving, check_key, may_begin_a_key, open_local
from hostler.store.retry import RetryTime, attempts

T = TypeVar("T")

PAGE = 1000
PART = 1 << 20
REREADS = 25  # of an object that is replaced while it is read
AHEAD = 8  # parts under way at a time
SERVER = "hostler.store.server"


class SshStore:
    """Passes `hostler.testing.store_contract`."""

    def __init__(self, url: str, patience: RetryTime | None = None, *, shared: bool = False) -> None:
        self.url = url
        target, self._path = split_store(url)
        self._patience = patience or RetryTime()
        bound = self._patience.bound
        self._connection = Connection(
            target, shared, connect=min(10.0, max(bound / 2, 1.0)), silence=min(10.0, max(bound / 3, 2.0))
        )
        self._slowest = max(bound, 5.0)  # seconds for one answer
        self._line = _StoreChannel(self._open)

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        check_key(key)
        stop = end if end is None else max(end, start)
        if stop is not None and stop - start <= PART:
            frame = self._ask("get", key=key, start=start, end=stop)
            return Blob(frame.body, frame.header["etag"])
        return _of_one_version(lambda: _joined(*self._parts(key, start, stop)))

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        check_key(key)
        if if_absent and len(data) >= LARGEST:
            raise StoreError(f"{self.url}: {key} is too large to be created at once", "upload it")
        if len(data) > PART and not if_absent:
            self._send(len(data), lambda at: data[at : at + PART], key)
            return True
        return bool(self._ask("put", data, key=key, if_absent=if_absent).header["won"])

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        if not may_begin_a_key(prefix):
            return
        while True:
            page = self._ask("list", prefix=prefix, after=after, deep=deep, limit=PAGE)
            rows = [Entry(*row) for row in json.loads(page.body)]
            yield from rows
            if len(rows) < PAGE:
                return
            after = rows[-1].key

    def delete(self, *keys: str) -> None:
        names = [check_key(key) for key in keys]
        if names:
            self._ask("delete", json.dumps(names).encode())

    def upload(self, path: Path, key: str) -> None:
        check_key(key)
        with open_local(path) as file:
            self._send(os.fstat(file.fileno()).st_size, lambda at: _read_at(file, at), key)

    def download(self, key: str, path: Path) -> None:
        check_key(key)
        _of_one_version(lambda: self._download(key, path))

    def _download(self, key: str, path: Path) -> None:
        _, parts = self._parts(key, 0, None)
        first = next(parts)  # before the file is begun: what is not there leaves nothing
        with arriving(path) as file:
            file.write(first)
            for part in parts:
                file.write(part)

    def close(self) -> None:
        """End the connection; the next request makes another."""
        self._line.close()

    def _open(self) -> Channel:
        return open_channel(self._connection, SERVER, {"path": self._path})

    def _ask(self, op: str, body: bytes = b"", **fields: Any) -> Frame:
        return self._call(lambda channel: channel.ask(op, body, timeout=self._slowest, **fields), fields)

    def _call(self, action: Callable[[Channel], Frame], fields: dict[str, Any]) -> Frame:
        """The action's answer, over a new connection whenever the last one was cut."""
        why = "the connection was cut"
        for _ in attempts(self._patience):
            try:
                answer = action(self._line.get())
            except Cut as error:
                why = str(error)
            except HostUnreachable as error:
                why = error.message
            except HostError as error:
                raise StoreError(f"{self.url}: {error.message}", error.hint) from error
            except StoreError as error:
                kind = StoreTooLarge if isinstance(error, StoreTooLarge) else StoreError
                raise kind(error.message.replace(self._path, self.url, 1), error.hint) from error
            else:
                if "absent" in answer.header:
                    raise NotFound(f"{fields.get('key')} does not exist in {self.url}")
                return answer
        raise StoreUnreachable(
            f"{self.url} does not answer: {why}", "check that the host and the network are up"
        )

    def _parts(self, key: str, start: int, stop: int | None) -> tuple[str, Iterator[bytes]]:
        """The etag, and the bytes in order, several parts asked for ahead; all of one version."""
        head = self._ask("get", key=key, start=start, end=_least(start + PART, stop))
        etag, end = head.header["etag"], _least(head.header["size"], stop)

        def part(at: int) -> Callable[[], bytes]:
            answer = self._ahead("get", key=key, start=at, end=min(at + PART, end))

            def read() -> bytes:
                frame = answer()
                if frame.header["etag"] != etag:
                    raise _Replaced(f"{self.url}: {key} is replaced again and again", "read it later")
                return frame.body

            return read

        def rest() -> Iterator[bytes]:
            yield head.body
            yield from _in_order(part, range(start + PART, end, PART))

        return etag, rest()

    def _send(self, size: int, part: Callable[[int], bytes], key: str) -> None:
        """Parts, several at a time, then its name. What has arrived stays there over a cut."""
        token, tries = secrets.token_hex(16), itertools.count()

        def send(at: int) -> Callable[[], Frame]:
            return self._ahead("part", lambda: part(at), token=token, at=at)

        for _ in _in_order(send, range(0, max(size, 1), PART)):
            pass
        fields: dict[str, Any] = {"key": key, "token": token, "size": size}
        self._call(lambda c: c.ask("place", timeout=self._slowest, again=next(tries) > 0, **fields), fields)

    def _ahead(self, op: str, body: Callable[[], bytes] = bytes, **fields: Any) -> Callable[[], Frame]:
        """Ask now, and wait for the answer when it is called for; asked again if it was cut off."""
        early: list[Callable[[], Frame]] = []
        try:
            channel = self._line.get()
            future = channel.send(op, body(), **fields)
            early.append(lambda: channel.wait(future, self._slowest))
        except (Cut, HostError):
            pass  # the asking below says what is wrong, after some patience

        def action(channel: Channel) -> Frame:
            if early:
                return early.pop()()
            return channel.ask(op, body(), timeout=self._slowest, **fields)

        return lambda: self._call(action, fields)


class _Replaced(StoreError):
    """The parts that were read are not of one version."""


def _of_one_version(read: Callable[[], T]) -> T:
    """Read again, after a moment of another length each time, so as not to keep step with who replaces it."""
    for n in range(REREADS):
        try:
            return read()
        except _Replaced:
            time.sleep(random.uniform(0, 0.01 * (n + 1)))
    return read()


class _StoreChannel:
    """The one channel of a store: made at first use and after a cut, by one thread for all who wait."""

    def __init__(self, open: Callable[[], Channel]) -> None:
        self._open = open
        self._lock = threading.Lock()
        self._channel: Channel | None = None
        self._failure: tuple[int, HostError] | None = None
        self._tries = 0

    def get(self) -> Channel:
        seen = self._tries
        with self._lock:
            if self._channel is not None and self._channel.is_open:
                return self._channel
            if self._failure is not None and self._tries > seen:  # made while we waited: ours too
                raise self._failure[1]
            return self._make()

    def _make(self) -> Channel:
        try:
            self._channel, self._failure = self._open(), None
        except HostError as error:
            self._failure = (self._tries, error)
            raise
        finally:
            self._tries += 1
        return self._channel

    def close(self) -> None:
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.hang_up()


def _in_order(begin: Callable[[int], Callable[[], T]], places: Iterable[int]) -> Iterator[T]:
    """Results in order, with several begun ahead."""
    waiting: deque[Callable[[], T]] = deque()
    for place in places:
        waiting.append(begin(place))
        if len(waiting) == AHEAD:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


def _least(one: int, other: int | None) -> int:
    return one if other is None else min(one, other)


def _joined(etag: str, parts: Iterator[bytes]) -> Blob:
    return Blob(b"".join(parts), etag)


def _read_at(file: BinaryIO, at: int) -> bytes:
    return os.pread(file.fileno(), PART, at)
