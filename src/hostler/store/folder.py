"""The store in a folder: a key is a file, on a local disk or one shared by many machines.

Every write is a temporary file in the key's own directory, made durable, then linked (if_absent) or
renamed to its name: readers see it whole or not at all. A second link on the temporary file means won,
whatever link answered; nothing relies on locks. The folder is made at the first write.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from hostler.errors import StoreError
from hostler.store.base import Blob, Entry, NotFound
from hostler.store.key import TEMPORARY, check_key, may_begin_a_key
from hostler.store.localfile import BLOCK, arriving, open_local, remove_if_there
from hostler.store.walk import etag, walk

T = TypeVar("T")

_TRIES = 10
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}
_AGAIN = {errno.ENOENT, errno.ESTALE, errno.EEXIST}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_NO_FOLDER_SYNC = {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOENT, errno.EACCES, errno.ESTALE}
_REASONS = {
    errno.ENOSPC: ("the disk is full", "free space there, or use another store"),
    errno.EDQUOT: ("the disk quota is used up", "free space there, or use another store"),
    errno.EROFS: ("the file system is read-only", "use a folder that can be written"),
    errno.EACCES: ("permission denied", "check the folder's owner and mode"),
    errno.EPERM: ("permission denied", "check the folder's owner and mode"),
    errno.ENOTDIR: ("a file is where a folder should be", "use another folder"),
}


class FolderStore:
    """Passes `hostler.testing.store_contract`."""

    def __init__(self, path: str | Path) -> None:
        self.url = os.path.abspath(path)
        self._root = self.url.rstrip("/") + "/"

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        return self.get_part(key, start, end)[0]

    def get_part(self, key: str, start: int, end: int | None) -> tuple[Blob, int]:
        """Bytes [start, end), and the size of the whole."""
        handle = self._open(key, _descriptor)
        try:
            facts = os.fstat(handle)
            stop = facts.st_size if end is None else min(end, facts.st_size)
            return Blob(_read(handle, start, stop), etag(facts)), facts.st_size
        except IsADirectoryError:
            raise NotFound(f"there is no {key} in {self.url}") from None
        except OSError as error:
            raise self._refusal(error, key) from error
        finally:
            os.close(handle)

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        def fill(handle: int) -> None:
            _write_all(handle, data)

        if not if_absent:
            return self._write(key, fill, _replace)
        return not self._is_anothers(key, data) and self._write(key, fill, _create)

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        if not may_begin_a_key(prefix):
            return
        try:
            yield from walk(self._root, prefix, after, deep=deep)
        except OSError as error:
            raise self._refusal(error, prefix) from error

    def delete(self, *keys: str) -> None:
        folders = set()
        for key in keys:
            path = self._path(key)
            try:
                os.unlink(path)
            except OSError as error:
                if error.errno not in _ABSENT | {errno.ESTALE}:
                    raise self._refusal(error, key) from error
            folders.add(os.path.dirname(path))
        for folder in folders:
            self._remove_emptied(folder)

    def upload(self, path: Path, key: str) -> None:
        with open_local(path) as source:

            def fill(handle: int) -> None:
                source.seek(0)
                with open(handle, "wb", closefd=False) as file:
                    shutil.copyfileobj(source, file, BLOCK)

            self._write(key, fill, _replace)

    def download(self, key: str, path: Path) -> None:
        with self._open(key, _file) as source, arriving(path) as file:
            shutil.copyfileobj(source, file, BLOCK)

    def adopt(self, path: Path, key: str) -> None:
        """Give a file that lies on the store's own disk its name, durable."""
        target = self._path(key)
        for _ in range(_TRIES):
            try:
                _sync_file(path)
                os.replace(path, target)
                _sync_folder(os.path.dirname(target))
                return
            except OSError as error:
                if error.errno not in _AGAIN or not path.exists():
                    raise self._refusal(error, key) from error
            self._make(os.path.dirname(target), key)
        raise StoreError(f"{key} could not be written in {self.url}: its folder vanishes again and again")

    def _path(self, key: str) -> str:
        return self._root + check_key(key)

    def _open(self, key: str, opener: Callable[[str], T]) -> T:
        path = self._path(key)
        for _ in range(_TRIES):
            try:
                return opener(path)
            except OSError as error:
                if error.errno in _ABSENT:
                    break
                if error.errno != errno.ESTALE:
                    raise self._refusal(error, key) from error
        raise NotFound(f"there is no {key} in {self.url}")

    def _is_anothers(self, key: str, data: bytes) -> bool:
        """A look before a create, so that one already lost costs no write."""
        try:
            return self.get(key).data != data
        except NotFound:
            return False

    def _write(self, key: str, fill: Callable[[int], None], place: Callable[[str, str], bool]) -> bool:
        """Try again while the directory is removed, or the key's holder deleted, under our hands."""
        target = self._path(key)
        folder = os.path.dirname(target)
        for _ in range(_TRIES):
            try:
                return _write_once(folder, target, fill, place)
            except OSError as error:
                if error.errno not in _AGAIN:
                    raise self._refusal(error, key) from error
            self._make(folder, key)
        raise StoreError(f"{key} could not be written in {self.url}: its folder vanishes again and again")

    def _make(self, folder: str, key: str) -> None:
        try:
            _make_durable(folder)
        except OSError as error:
            raise self._refusal(error, key) from error

    def _remove_emptied(self, folder: str) -> None:
        while folder.startswith(self._root):
            try:
                os.rmdir(folder)
            except OSError:
                return
            folder = os.path.dirname(folder)

    def _refusal(self, error: OSError, key: str) -> StoreError:
        reason, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
        return StoreError(f"{self.url}: {key or 'the folder'}: {reason}", hint)


def _file(path: str) -> BinaryIO:
    return open(path, "rb")


def _descriptor(path: str) -> int:
    """Without a file object: `status` opens thousands of small objects."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _read(handle: int, start: int, stop: int) -> bytes:
    """Bytes [start, stop) of the file, in as many reads as the kernel wants."""
    data = os.pread(handle, max(stop - start, 0), start)  # also of nothing: a directory is found out
    start += len(data)
    while start < stop and (piece := os.pread(handle, stop - start, start)):
        data += piece
        start += len(piece)
    return data


def _write_once(
    folder: str, target: str, fill: Callable[[int], None], place: Callable[[str, str], bool]
) -> bool:
    temp = f"{folder}/{TEMPORARY}{os.urandom(8).hex()}"
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            fill(handle)
            os.fsync(handle)
        finally:
            os.close(handle)
        won = place(temp, target)
    except BaseException:
        remove_if_there(temp)
        raise
    if won:
        _sync_folder(folder)
    return won


def _write_all(handle: int, data: bytes) -> None:
    """Without a file object, which looks at the file three times before it writes."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def _replace(temp: str, target: str) -> bool:
    os.replace(temp, target)
    return True


def _create(temp: str, target: str) -> bool:
    """Link is believed by its effect only: over a network its answer may be that of a repetition."""
    answer = OSError(errno.ENOTSUP, "link had no effect")
    try:
        os.link(temp, target)
    except OSError as error:
        answer = error
    if os.stat(temp).st_nlink == 2:
        won = True
    elif os.path.lexists(target):
        won = _bytes(target) == _bytes(temp)
    elif answer.errno in _NO_LINKS:
        raise StoreError(
            f"the file system of {os.path.dirname(target)} has no hard links, so no two workers can share it",
            "use a folder on ext4, xfs, btrfs, ZFS or NFS, or a bucket such as s3://bucket/prefix",
        )
    else:
        raise answer
    remove_if_there(temp)
    return won


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _make_durable(folder: str) -> None:
    """Like makedirs; each new directory's own name is made durable too."""
    parent = os.path.dirname(folder)
    try:
        os.mkdir(folder)  # noqa: PTH102
    except FileNotFoundError:
        _make_durable(parent)
        try:
            os.mkdir(folder)  # noqa: PTH102
        except FileExistsError:
            return
        except FileNotFoundError:
            return  # removed again by a delete; the writer comes back
    except FileExistsError:
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", folder) from None
        return
    _sync_folder(parent)


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: str) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
