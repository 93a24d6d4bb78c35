"""Turns `data:` entries into items a machine can find; uploads local ones, once per content.

A folder becomes one tar (everything in it, no ignore rules), an archive goes as it is, any other file
as a tar of one, whose name is then the item's `out`. Bytes are streamed through a temporary file; an
unchanged folder is not read again. An upload that was cut goes on where it was
(`records/checkpoint/bulk.py`). Data
that is there already and old is written again, so that `hostler gc` leaves it.
"""

from __future__ import annotations

import filecmp
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from hostler.errors import MissingError, SpecError, StoreError
from hostler.fleet.snapshot import memo
from hostler.fleet.snapshot.archive import hash_file, pack
from hostler.fleet.snapshot.ignore import OWN_FILE
from hostler.fleet.snapshot.tree import FILE, Tree, TreeNode, scan, shown
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.checkpoint import bulk
from hostler.spec.job import DataItem
from hostler.spec.names import check_part
from hostler.store.base import Store

SCHEMES = ("gs", "s3", "az", "hf", "https", "http", "file")
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".zip")

Watch = Callable[[str, int], bulk.Sent]


class GivenData(Protocol):
    """An entry of `data:` as the project file gives it."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str | None: ...
    @property
    def url(self) -> str | None: ...
    @property
    def run(self) -> tuple[str, ...]: ...
    @property
    def out(self) -> str | None: ...
    @property
    def at(self) -> str | None: ...


def data_items(
    entries: Iterable[GivenData],
    project: Path,
    store: Store,
    cache: Path,
    *,
    clock: Callable[[], float] = time.time,
    watch: Watch = lambda what, size: lambda more, old: None,
) -> tuple[DataItem, ...]:
    """The items of a job; what lies in the project is in the store when this returns. `watch` is told what is
    sent, and how much of it."""
    items = ((entry, _item(entry, project, store, cache, clock, watch)) for entry in entries)
    return tuple(replace(item, at=entry.at) for entry, item in items)


def check_places(entries: Iterable[GivenData], project: Path, code: Collection[str]) -> None:
    """SpecError if data with `at` would lie where the code has another file; `code`: names of its files."""
    for entry in entries:
        clash = next(_in_the_way(entry, entry.at, project, code), None) if entry.at else None
        if clash is not None:
            raise SpecError(
                f"data {entry.name!r}: at: {entry.at} is taken: the code has {shown(clash)}",
                hint=f"choose another `at:`, or name that file in {OWN_FILE}",
            )


def _in_the_way(entry: GivenData, at: str, project: Path, code: Collection[str]) -> Iterator[str]:
    brought = Path(os.path.realpath(project / entry.path)) if entry.path else None
    for name in code:
        if name == at or name.startswith(f"{at}/"):
            path = brought / name[len(at) + 1 :] if brought and name != at else brought
            whole = brought is not None and brought.is_file() and name != at
            if whole or (name == at and path is None) or (path and _differs(path, project / name)):
                yield name
        elif at.startswith(f"{name}/"):
            yield name


def _differs(brought: Path, code: Path) -> bool:
    """Whether a file of data would hide one of code: equal ones may be both."""
    if brought.is_dir():
        return True
    return brought.is_file() and not filecmp.cmp(brought, code, shallow=False)


def _item(
    entry: GivenData, project: Path, store: Store, cache: Path, clock: Callable[[], float], watch: Watch
) -> DataItem:
    name = check_part(entry.name)
    if entry.run:
        if not entry.out:
            raise SpecError(
                f"data {name!r} has a command and no `out`", hint="name the folder it leaves as `out`"
            )
        return DataItem(name, run=tuple(entry.run), out=entry.out)
    if entry.url is not None:
        if urlsplit(entry.url).scheme not in SCHEMES:
            raise SpecError(
                f"data {name!r}: {entry.url} is not an address that hostler fetches from",
                hint=", ".join(f"{scheme}://" for scheme in SCHEMES),
            )
        return DataItem(name, url=entry.url)
    if entry.path is None:
        raise SpecError(f"data {name!r} is empty", hint="give a path, a URL, or `run` and `out`")
    if entry.path.startswith(("/", "~")):
        return DataItem(name, path=entry.path)
    return _uploaded(name, Path(os.path.realpath(project / entry.path)), store, cache, clock, watch)


def _uploaded(
    name: str, path: Path, store: Store, cache: Path, clock: Callable[[], float], watch: Watch
) -> DataItem:
    if not path.exists():
        raise MissingError(
            f"data {name!r}: {path} does not exist", hint="the path is relative to the project"
        )
    if not path.is_file() and not path.is_dir():
        raise MissingError(
            f"data {name!r}: {path} is neither a file nor a folder", hint="name a file or a folder"
        )
    is_archive = path.is_file() and path.name.lower().endswith(ARCHIVES)
    tree = _tree(name, path)
    known = memo.of(path, cache, "data-memos")
    sha = known.recall(tree)
    if sha is None or not bulk.keep(store, sha, time.time()):
        send = Sending(f"data {name!r}", store, watch)
        sha = _send_as_is(name, tree, path, send) if is_archive else _send_packed(name, tree, send, cache)
        known.keep(tree, sha, clock())
    return DataItem(name, blob=sha, out=path.name if path.is_file() and not is_archive else None)


def _tree(name: str, path: Path) -> Tree:
    tree = scan(path, None) if path.is_dir() else _single(path)
    if tree.left_out:
        more = f" and {len(tree.left_out) - 1} more" if len(tree.left_out) > 1 else ""
        raise SpecError(
            f"data {name!r}: {tree.left_out[0]}{more}", hint="give its absolute path on the machine instead"
        )
    return tree


def _single(path: Path) -> Tree:
    found = path.stat()
    stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return Tree(path.parent, (TreeNode(path.name, FILE, found.st_size, bool(found.st_mode & 0o100), stamp),))


@dataclass(frozen=True)
class Sending:
    """Brings files to the store, once for each content."""

    what: str
    store: Store
    watch: Watch

    def __call__(self, path: Path, sha: str) -> bool:
        """Whether it was not there."""
        if bulk.keep(self.store, sha, time.time()):
            return False
        bulk.send(self.store, path, sha, self.watch(self.what, path.stat().st_size))
        return True


def _send_as_is(name: str, tree: Tree, path: Path, send: Sending) -> str:
    sha, is_new = hash_file(path), True
    try:
        is_new = send(path, sha)
    except StoreError:
        if _single(path) == tree:
            raise
    if is_new and _single(path) != tree:
        send.store.delete(layout.data(sha), layout.data_list(sha))
        raise MissingError(
            f"data {name!r}: {path} changed while it was read", hint="submit again once nothing writes to it"
        )
    return sha


def _send_packed(name: str, tree: Tree, send: Sending, cache: Path) -> str:
    with _scratch(cache) as fresh:
        packed = pack(tree, fresh, compress=False)
        if packed.disturbed:
            raise MissingError(
                f"data {name!r}: {packed.disturbed[0]}", hint="submit again once nothing writes to it"
            )
        send(fresh, packed.sha)
    return packed.sha


@contextmanager
def _scratch(cache: Path) -> Iterator[Path]:
    folder = cache / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f"{secrets.token_hex(8)}.tar"
    try:
        yield fresh
    finally:
        fresh.unlink(missing_ok=True)
