"""Keys of a folder in name order, read lazily, directory by directory.

Order is that of whole keys ('a-b' before 'a/b'), so a directory sorts as its name and '/'. What lies
before `after` is not walked. A name costs nothing but its directory's reading: a file is looked at when
somebody asks for its size, etag or time, and one that has vanished by then is empty and of no time. Links are
not followed and, like pipes and sockets, not listed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from functools import cached_property

from hostler.confined import Root
from hostler.store.base import TEMPORARY, Entry


class FileEntry(Entry):
    """A row of a listing whose facts are those of the moment they are first asked for."""

    def __init__(self, key: str, path: str) -> None:
        facts = self.__dict__  # asked for once: there are tens of thousands of them
        facts["key"], facts["_path"] = key, path

    @cached_property
    def _facts(self) -> os.stat_result | None:
        try:
            return os.stat(self.__dict__["_path"], follow_symlinks=False)
        except OSError as error:
            _check_absent(error)
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


class FolderEntry(FileEntry):
    """A row for a directory: its etag changes when a name in it comes or goes."""

    @property
    def size(self) -> int:
        return 0


def walk(root: Root, prefix: str, after: str, *, deep: bool) -> Iterator[Entry]:
    """Entries under root whose key starts with prefix and comes after `after`; OSError if the
    folder is missing, or a link is on the way to it."""
    base, slash, _ = prefix.rpartition("/")
    handle = root.folder(base)
    try:
        names = _names(handle, prefix[len(base + slash) :])
    finally:
        os.close(handle)
    return _walk(root.path, base + slash, names, prefix, after, deep)


def keys(root: Root, prefix: str, after: str) -> list[str] | None:
    """The same keys at once, without a row for each, where no directory lies among them; None where one does:
    tens of thousands of names are then a list and nothing more."""
    base, slash, _ = prefix.rpartition("/")
    handle = root.folder(base)
    try:
        names = _names(handle, prefix[len(base + slash) :])
    finally:
        os.close(handle)
    return None if "/" in "".join(names) else _keys(base + slash, names, prefix, after)


def etag(facts: os.stat_result) -> str:
    return f"{facts.st_ino:x}-{facts.st_mtime_ns:x}-{facts.st_size:x}"


def _walk(root: str, base: str, names: list[str], prefix: str, after: str, deep: bool) -> Iterator[Entry]:
    levels = [iter(_keys(base, names, prefix, after))]  # no recursion: an enemy nests folders without end
    while levels:
        for key in levels[-1]:
            if not key.endswith("/"):
                yield FileEntry(key, root + key)
            elif deep:
                levels.append(iter(_keys(key, _names(root + key), prefix, after)))
                break
            elif key > after and _holds_a_file(root + key):
                yield FolderEntry(key, root + key)
        else:
            levels.pop()


def _keys(base: str, names: list[str], prefix: str, after: str) -> list[str]:
    """Wanted keys of one directory, subdirectories with '/', in order."""
    if len(prefix) > len(base):
        head = prefix[len(base) :]
        names = [name for name in names if name.startswith(head)]
    if after > base:
        rest = after[len(base) :] if after.startswith(base) else None
        names = (
            [] if rest is None else [n for n in names if n > rest or (n[-1] == "/" and rest.startswith(n))]
        )
    names.sort()
    return [base + name for name in names]


def _names(folder: str | int, head: str = "") -> list[str]:
    """Files and directories, these with '/', of a directory whose names begin so: by a path that was just
    listed as one, or a descriptor."""
    names: list[str] = []
    try:
        with os.scandir(folder) as listed:
            rows = [row for row in listed if row.name.startswith(head)] if head else list(listed)
            names = [row.name for row in rows if row.is_file(follow_symlinks=False)]
            if len(names) < len(rows):  # tens of thousands of files are not asked twice
                names += [f"{row.name}/" for row in rows if row.is_dir(follow_symlinks=False)]
    except OSError as error:
        _check_absent(error)
    if TEMPORARY in "/".join(names):
        return [name for name in names if not name.startswith(TEMPORARY)]
    return names


def _holds_a_file(folder: str) -> bool:
    """Whether any key lies under it: a directory emptied by deletes is not a folder row."""
    pending = [folder]
    while pending:
        place = pending.pop()
        try:
            with os.scandir(place) as rows:
                for row in rows:
                    if row.name.startswith(TEMPORARY):
                        continue
                    if row.is_file(follow_symlinks=False):
                        return True
                    if row.is_dir(follow_symlinks=False):
                        pending.append(f"{place}{row.name}/")
        except OSError as error:
            _check_absent(error)
    return False


def _check_absent(error: OSError) -> None:
    """Raise the error unless it says that nothing is there: no key is as long as ENAMETOOLONG means."""
    if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
        raise error
