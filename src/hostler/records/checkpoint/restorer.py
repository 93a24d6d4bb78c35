"""The restorer brings files of the store into a new folder, and writes only to files it made itself.

Rows come from a record that anybody may have written. All are checked before the first byte arrives: each
name once, none below another row's file or link, as many parts as the size needs. A file is made anew below
the folder, never opened; an object longer than its row says ends it. Links come last, and must end inside.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path, PurePosixPath
from typing import Any

from hostler import confined
from hostler.errors import DamagedError
from hostler.frozen import dataclass
from hostler.records.checkpoint import parts
from hostler.records.checkpoint.tree import inside
from hostler.store import Store

LONGEST = 255  # bytes of a part of a name
LONGEST_PATH = 2000  # bytes of a name: with its folder it is shorter than the 4096 of a system's paths
DEEPEST = 200  # parts of a name: whoever walks through the folders calls itself for each
_MOST = 1 << 62  # sizes, times and numbers of objects stay below it


@dataclass(frozen=True)
class RestoredFile:
    """A file or a link of a record."""

    name: str
    size: int = 0
    n: int = 0  # number of its first object
    parts: int = 1
    sha256: str | None = None  # None: not known
    mode: int | None = None
    mtime: int = 0  # nanoseconds since 1970; 0: not known
    link: str = ""
    at: int | None = None  # where it begins in an object that holds others too


def rows_of(records: Any, *, last: bool = False) -> list[RestoredFile]:
    """The rows of a record; DamagedError if one is not that of a file, or two cannot be in one folder.
    `last`: of rows of one name the last counts, as a run may leave two such files."""
    if not isinstance(records, list):
        raise DamagedError(f"its files are not a list of rows: {records!r:.60}")
    rows = [row_of(record) for record in records]
    if last:
        rows = list({row.name: row for row in rows}.values())
    _check_together(rows)
    return rows


def row_of(record: Any) -> RestoredFile:
    """The row of a file; DamagedError says what is wrong with it."""
    if not isinstance(record, dict):
        raise DamagedError(f"{record!r:.60} is not the row of a file")
    name = _name(record.get("name"))
    sha256, mode = record.get("sha256"), record.get("mode")
    row = RestoredFile(
        name,
        size=_number(record.get("size", 0), f"the size of {name!r}"),
        n=_number(record.get("n", 0), f"the number of {name!r}"),
        parts=_number(record.get("parts", 1), f"the parts of {name!r}", least=1),
        sha256=None if sha256 is None else str(sha256),
        mode=None if mode is None else _number(mode, f"the mode of {name!r}") & 0o777,
        mtime=_number(record.get("mtime") or 0, f"the time of {name!r}", least=-_MOST),
        link=_link(record.get("link") or "", name),
        at=None if record.get("at") is None else _number(record["at"], f"the place of {name!r}"),
    )
    if row.parts not in (1, parts.count(row.size)) or (row.at is not None and row.parts > 1):
        raise DamagedError(f"{name!r} cannot be {row.size} bytes in {row.parts} parts")
    return row


def restore(
    store: Store,
    rows: Sequence[RestoredFile],
    key: Callable[[int], str],
    folder: Path,
    *,
    resume: bool = False,
) -> int:
    """Bring the rows of `rows_of` into a folder that is there; `key` is that of the object of a number. With
    `resume`, whole files of an earlier call stay: returns how many. NotFound if an object is not there."""
    known = 0
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for row in rows:
            if row.link:
                if resume:
                    confined.remove_below(root, row.name)
            elif resume and _is_whole(root, row):
                known += 1
            else:
                _bring(store, row, key, root)
        _make_links(root, [row for row in rows if row.link], folder)
    finally:
        os.close(root)
    return known


def _bring(store: Store, row: RestoredFile, key: Callable[[int], str], root: int) -> None:
    with _nothing_in_the_way(row.name):
        handle = confined.create_below(root, row.name)
    digest = hashlib.sha256()
    with open(handle, "wb") as file:
        for piece in _pieces(store, row, key):
            digest.update(piece)
            file.write(piece)
        if row.sha256 is not None and digest.hexdigest() != row.sha256:
            raise _damaged(row)
        file.flush()
        if row.mode is not None:
            os.fchmod(handle, row.mode)
        if row.mtime:  # scripts look for their newest file by it
            os.utime(handle, ns=(row.mtime, row.mtime))


def _pieces(store: Store, row: RestoredFile, key: Callable[[int], str]) -> Iterator[bytes]:
    """The bytes of a file, never more than its size: a byte more is asked for where an object must end."""
    begin = row.at or 0
    for start in range(0, max(row.size, 1), parts.PART):
        length = min(parts.PART, row.size - start)
        if row.parts > 1:
            data = store.get(key(row.n + start // parts.PART), end=length + 1).data
        else:
            ends = row.at is None and start + length == row.size
            data = store.get(key(row.n), start=begin + start, end=begin + start + length + ends).data
        if len(data) != length:
            raise _damaged(row)
        yield data


def _is_whole(root: int, row: RestoredFile) -> bool:
    """Whether the file is there, and what was saved; anything else of its name is removed."""
    try:
        handle = confined.open_below(root, row.name)
    except (FileNotFoundError, NotADirectoryError):
        return False
    with open(handle, "rb") as file:
        facts = os.fstat(handle)
        if confined.is_file(facts) and facts.st_size == row.size:
            digest = hashlib.sha256()
            while piece := file.read(1 << 20):
                digest.update(piece)
            if digest.hexdigest() == row.sha256:
                return True
    confined.remove_below(root, row.name)
    return False


def _make_links(root: int, links: Sequence[RestoredFile], folder: Path) -> None:
    for row in links:
        with _nothing_in_the_way(row.name):
            confined.link_below(root, row.name, row.link)
    for row in links:
        if not confined.leads_inside(str(folder), row.name):
            raise _leads_out(row.name, row.link)


@contextmanager
def _nothing_in_the_way(name: str) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise DamagedError(f"{name!r} stands in the way of another file") from None


def _check_together(rows: Sequence[RestoredFile]) -> None:
    names: set[str] = set()
    for row in rows:
        if row.name in names:
            raise DamagedError(f"{row.name!r} is there twice")
        names.add(row.name)
    for row in rows:
        at = row.name.rfind("/")
        while at > 0:
            if row.name[:at] in names:
                raise DamagedError(f"{row.name!r} lies below {row.name[:at]!r}, which is not a folder")
            at = row.name.rfind("/", 0, at)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise DamagedError(f"{name!r:.60} is not the name of a file")
    path = inside(name)
    lengths = [_length(part) for part in path.parts]
    if not 0 < len(lengths) <= DEEPEST or max(lengths) > LONGEST or _length(name) > LONGEST_PATH:
        raise DamagedError(f"{name!r:.60} cannot be the name of a file")
    return str(path)


def _link(target: Any, name: str) -> str:
    if not isinstance(target, str) or _length(target) > LONGEST_PATH:
        raise DamagedError(f"{name!r:.60} is a link to {target!r:.60}")
    if target:
        inside(target, below=PurePosixPath(name).parent)
    return target


def _length(text: str) -> float:
    """Bytes of a name or of a link; infinite for one that no file system takes."""
    try:
        return len(os.fsencode(text))
    except UnicodeEncodeError:
        return inf


def _number(value: Any, what: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value < _MOST:
        raise DamagedError(f"{what} cannot be {value!r:.60}")
    return value


def _leads_out(name: str, target: str) -> DamagedError:
    return DamagedError(f"{name!r} leads out of its folder, to {target!r}")


def _damaged(row: RestoredFile) -> DamagedError:
    return DamagedError(f"{row.name} is not what was saved")
