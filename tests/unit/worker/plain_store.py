"""A store in a folder without any protocol, which several processes of a test can read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from hostler.store.base import Blob, Entry, NotFound


class PlainStore:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = str(root)
        root.mkdir(parents=True, exist_ok=True)

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        return Blob(self._path(key).read_bytes()[start:end], "")

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return True

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        for path in sorted(self.root.rglob("*")):
            key = path.relative_to(self.root).as_posix()
            if path.is_file() and key.startswith(prefix) and key > after:
                yield Entry(key, path.stat().st_size, "", 0.0)

    def delete(self, *keys: str) -> None:
        for key in keys:
            (self.root / key).unlink(missing_ok=True)

    def upload(self, path: Path, key: str) -> None:
        self.put(key, path.read_bytes())

    def download(self, key: str, path: Path) -> None:
        with open(self.root / "downloads.log", "a") as log:
            log.write(f"{key}\n")
        shutil.copyfile(self._path(key), path)

    def _path(self, key: str) -> Path:
        path = self.root / key
        if not path.is_file():
            raise NotFound(key)
        return path
