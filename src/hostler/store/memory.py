"""The store in this process's memory, for tests: those of hostler and those of its users.

`before`, if set, is called with (operation, key) ahead of every request and may raise: the request then
did not happen. A listing asks once per page, a delete once per key.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hostler.store.base import BLOCK, Blob, Entry, NotFound, arriving, check_key, may_begin_a_key, open_local

PAGE = 1000

_shared: dict[str, MemoryStore] = {}
_shared_lock = threading.Lock()


class MemoryStore:
    """Thread-safe; passes `hostler.testing.store_contract`."""

    def __init__(self, name: str = "", *, clock: Callable[[], float] = time.time) -> None:
        self.url = f"memory:{name}"
        self.before: Callable[[str, str], None] | None = None
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, Entry]] = {}
        self._names: list[str] = []
        self._writes = 0

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        self._ask("get", check_key(key))
        return self._get(key, start, end)

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        self._ask("put", check_key(key))
        return self._put(key, data, if_absent)

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        if not may_begin_a_key(prefix):
            return
        while True:
            self._ask("list", prefix)
            rows = self._page(prefix, after, deep)
            yield from rows
            if len(rows) < PAGE:
                return
            after = rows[-1].key

    def delete(self, *keys: str) -> None:
        for key in keys:
            self._ask("delete", check_key(key))
            with self._lock:
                if self._objects.pop(key, None):
                    del self._names[bisect_left(self._names, key)]

    def upload(self, path: Path, key: str) -> None:
        self._ask("upload", check_key(key))
        with open_local(path) as source:
            self._put(key, source.read(), False)

    def download(self, key: str, path: Path) -> None:
        self._ask("download", check_key(key))
        data = memoryview(self._get(key, 0, None).data)
        with arriving(path) as file:
            for start in range(0, len(data), BLOCK):
                file.write(data[start : start + BLOCK])

    def _ask(self, operation: str, key: str) -> None:
        if self.before is not None:
            self.before(operation, key)

    def _get(self, key: str, start: int, end: int | None) -> Blob:
        with self._lock:
            if key not in self._objects:
                raise NotFound(f"{key} does not exist in {self.url}")
            data, entry = self._objects[key]
        return Blob(data[start:end], entry.etag)

    def _put(self, key: str, data: bytes, if_absent: bool) -> bool:
        with self._lock:
            if key in self._objects:
                if if_absent:
                    return self._objects[key][0] == data
            else:
                insort(self._names, key)
            self._writes += 1
            self._objects[key] = (bytes(data), Entry(key, len(data), f"{self._writes:x}", self._clock()))
            return True

    def _page(self, prefix: str, after: str, deep: bool) -> Sequence[Entry]:
        with self._lock:
            rows: list[Entry] = []
            at = max(bisect_left(self._names, prefix), bisect_right(self._names, after))
            while at < len(self._names) and len(rows) < PAGE and self._names[at].startswith(prefix):
                key = self._names[at]
                slash = -1 if deep else key.find("/", len(prefix))
                if slash < 0:
                    rows.append(self._objects[key][1])
                    at += 1
                else:
                    if key[: slash + 1] > after:
                        rows.append(Entry(key[: slash + 1], 0, "", 0.0))
                    at = bisect_left(self._names, key[:slash] + "0")  # the character after '/'
            return rows


def shared_memory(name: str) -> MemoryStore:
    """`memory:` is a new store each time; `memory:name` the same one within this process."""
    if not name:
        return MemoryStore()
    with _shared_lock:
        return _shared.setdefault(name, MemoryStore(name))
