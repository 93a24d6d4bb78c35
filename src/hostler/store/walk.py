"""Keys of a folder in name order, read lazily, directory by directory.

Order is that of whole keys ('a-b' before 'a/b'), so a directory sorts as its name and '/'. What lies
before `after` is not walked. A name costs nothing but its directory's reading: a file is looked at when
somebody asks for its size, etag or time, and one that has vanished by then is empty and of no time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property

from hostler.store.base import Entry
from hostler.store.key import TEMPORARY


class File(Entry):
    """A row of a listing whose facts are those of the moment they are first asked for."""

    def __init__(self, key: str, path: str) -> None:
        facts = self.__dict__  # asked for once: there are tens of thousands of them
        facts["key"], facts["_path"] = key, path

    @cached_property
    def _facts(self) -> os.stat_result | None:
        try:
            return os.stat(self.__dict__["_path"])
        except FileNotFoundError:
            return None

    @property
    def size(self) -> int:
        return self._facts.st_size if self._facts else 0

    @property
    def etag(self) -> str:
        return etag(self._facts) if self._facts else ""

    @property
    def modified(self) -> float:
        return self._facts.st_mtime if self._facts else 0.0


class Folder(File):
    """A row for a directory: its etag changes when a name in it comes or goes."""

    @property
    def size(self) -> int:
        return 0


def walk(root: str, prefix: str, after: str, *, deep: bool) -> Iterator[Entry]:
    """Entries under root (a path ending in '/') whose key starts with prefix and comes after `after`."""
    base, slash, _ = prefix.rpartition("/")
    return _walk(root, base + slash, prefix, after, deep)


def etag(facts: os.stat_result) -> str:
    return f"{facts.st_ino:x}-{facts.st_mtime_ns:x}-{facts.st_size:x}"


def _walk(root: str, base: str, prefix: str, after: str, deep: bool) -> Iterator[Entry]:
    for key in _keys(root, base, prefix, after):
        if not key.endswith("/"):
            yield File(key, root + key)
        elif deep:
            yield from _walk(root, key, prefix, after, deep)
        elif key > after and _holds_a_file(root + key):
            yield Folder(key, root + key)


def _keys(root: str, base: str, prefix: str, after: str) -> list[str]:
    """Wanted keys of one directory, subdirectories with '/', in order."""
    head = prefix[len(base) :]
    names = _names(root + base)
    if head:
        names = [name for name in names if name.startswith(head)]
    if after > base:
        rest = after[len(base) :] if after.startswith(base) else None
        names = (
            [] if rest is None else [n for n in names if n > rest or (n[-1] == "/" and rest.startswith(n))]
        )
    names.sort()
    return [base + name for name in names]


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as rows:
            return [
                row.name + "/" if row.is_dir() else row.name
                for row in rows
                if not row.name.startswith(TEMPORARY)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _holds_a_file(folder: str) -> bool:
    """Whether any key lies under it: a directory emptied by deletes is no folder row."""
    inside = []
    try:
        with os.scandir(folder) as rows:
            for row in rows:
                if row.is_dir():
                    inside.append(row.name)
                elif not row.name.startswith(TEMPORARY):
                    return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    return any(_holds_a_file(f"{folder}{name}/") for name in inside if not name.startswith(TEMPORARY))
