"""Keys of a folder in name order, read lazily, directory by directory.

Order is that of whole keys ('a-b' before 'a/b'), so a directory sorts as its name and '/'. What lies
before `after` is neither walked nor looked at; only entries that are yielded cost a stat. What
vanishes meanwhile is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from hostler.store.base import Entry
from hostler.store.key import TEMPORARY


def walk(root: str, prefix: str, after: str, *, deep: bool) -> Iterator[Entry]:
    """Entries under root (a path ending in '/') whose key starts with prefix and comes after `after`."""
    base, slash, _ = prefix.rpartition("/")
    return _walk(root, base + slash, prefix, after, deep)


def etag(facts: os.stat_result) -> str:
    return f"{facts.st_ino:x}-{facts.st_mtime_ns:x}-{facts.st_size:x}"


def _walk(root: str, base: str, prefix: str, after: str, deep: bool) -> Iterator[Entry]:
    for key in _keys(root, base, prefix, after):
        if not key.endswith("/"):
            try:
                facts = os.stat(root + key)
            except FileNotFoundError:
                continue
            yield Entry(key, facts.st_size, etag(facts), facts.st_mtime)
        elif deep:
            yield from _walk(root, key, prefix, after, deep)
        elif key > after and _holds_a_file(root + key):
            yield Entry(key, 0, "", 0.0)


def _keys(root: str, base: str, prefix: str, after: str) -> list[str]:
    """Wanted keys of one directory, subdirectories with '/', in order."""
    head = prefix[len(base) :]
    names = [name for name in _names(root + base) if name.startswith(head)]
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
    names = _names(folder)
    if any(not name.endswith("/") for name in names):
        return True
    return any(_holds_a_file(folder + name) for name in names)
