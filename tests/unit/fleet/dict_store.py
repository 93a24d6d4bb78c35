"""A store in a dict, for tests of what is put into one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from hostler.store.base import Blob, Entry, NotFound


class DictStore:
    url = "memory:"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: list[str] = []

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        if key not in self.objects:
            raise NotFound(key)
        return Blob(self.objects[key][start:end], "")

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        if if_absent and key in self.objects:
            return False
        self.objects[key] = data
        return True

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        for key in sorted(self.objects):
            if key.startswith(prefix) and key > after:
                yield Entry(key, len(self.objects[key]), "", time.time())

    def delete(self, *keys: str) -> None:
        for key in keys:
            self.objects.pop(key, None)

    def upload(self, path: Path, key: str) -> None:
        self.uploads.append(key)
        self.objects[key] = path.read_bytes()

    def download(self, key: str, path: Path) -> None:
        path.write_bytes(self.get(key).data)
