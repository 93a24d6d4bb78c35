"""The store in a folder: a key is a file, on a local disk or one shared by many machines.

Every write is a temporary file in the key's own directory, made durable, then linked (if_absent) or
renamed to its name: readers see it whole or not at all. A second link on the temporary file means won,
whatever link answered; nothing relies on locks. The folder is made at the first write. It may be a link
itself; below it no link is ever followed, and nothing but a regular file is an object.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from hostler import confined
from hostler.errors import StoreError, StoreTooLarge
from hostler.store.base import (
    BLOCK,
    TEMPORARY,
    Blob,
    Entry,
    NotFound,
    arriving,
    check_key,
    may_begin_a_key,
    open_local,
)
from hostler.store.walk import etag, walk
from hostler.store.walk import keys as keys_of

_TRIES = 10
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO}  # ENXIO: a socket
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
    errno.ELOOP: (
        "a link is in the way, and no link inside a store is followed",
        "make the store's own folder the link, or mount the other disk there",
    ),
}


class FolderStore:
    """Passes `hostler.testing.store_contract`."""

    def __init__(self, path: str | Path) -> None:
        self.url = os.path.abspath(path)
        self._root = confined.Root(self.url)

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        return self.get_part(key, start, end)[0]

    def get_part(self, key: str, start: int, end: int | None) -> tuple[Blob, int]:
        """Bytes [start, end), and the size of the whole."""
        handle = self._open(check_key(key))
        try:
            facts = os.fstat(handle)
            if not S_ISREG(facts.st_mode):
                raise self._absent(key)
            stop = facts.st_size if end is None else min(end, facts.st_size)
            return Blob(_read(handle, start, stop), etag(facts)), facts.st_size
        except OSError as error:
            raise self._refusal(error, key) from error
        finally:
            os.close(handle)

    def get_into(self, key: str, memory: memoryview) -> int:
        """Read what there is room for into memory that is there: the number of bytes."""
        handle = self._open(check_key(key))
        try:
            if not S_ISREG(os.fstat(handle).st_mode):
                raise self._absent(key)
            done = 0
            while done < len(memory) and (count := os.readv(handle, [memory[done:]])):
                done += count
            return done
        except OSError as error:
            raise self._refusal(error, key) from error
        finally:
            os.close(handle)

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        def fill(handle: int) -> None:
            _write_all(handle, data)

        if not if_absent:
            return self._write(key, fill, _replace)
        return not self._is_anothers(key, data) and self.create(key, data)

    def put_again(self, key: str, known: str) -> bool:
        """Give an object a second name, without a write; False if that cannot be, or the name is taken."""
        folder, _, name = check_key(known).rpartition("/")

        def link(place: int, second: str) -> bool:
            handle = self._root.folder(folder)
            try:
                os.link(name, second, src_dir_fd=handle, dst_dir_fd=place, follow_symlinks=False)
            except OSError as error:
                if error.errno in _NO_LINKS | {errno.EEXIST}:
                    return False
                raise
            finally:
                os.close(handle)
            return True

        try:
            return self._place(key, link)
        except StoreError:  # also where the object is gone: whoever puts it learns why
            return False

    def create(self, key: str, data: bytes) -> bool:
        """The same without a look before it: the file system alone decides."""
        return self._write(key, lambda handle: _write_all(handle, data), _create)

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        if not may_begin_a_key(prefix):
            return
        try:
            yield from walk(self._root, prefix, after, deep=deep)
        except OSError as error:
            if _is_absent(error):
                return
            raise self._refusal(error, prefix) from error

    def keys(self, prefix: str, after: str = "") -> Iterable[str]:
        """Keys of `list`: all at once where they lie in one directory."""
        try:
            found = keys_of(self._root, prefix, after) if may_begin_a_key(prefix) else []
        except OSError as error:
            if not _is_absent(error):
                raise self._refusal(error, prefix) from error
            found = []
        return (entry.key for entry in self.list(prefix, after)) if found is None else found

    def delete(self, *keys: str) -> None:
        names: dict[str, list[str]] = {}
        for key in keys:
            folder, _, name = check_key(key).rpartition("/")
            names.setdefault(folder, []).append(name)
        for folder, below in names.items():
            try:
                self._delete(folder, below)
            except OSError as error:
                if not _is_absent(error) and error.errno != errno.ESTALE:
                    raise self._refusal(error, error.filename or folder) from error
            self._remove_emptied(folder)

    def upload(self, path: Path, key: str) -> None:
        with open_local(path) as source:

            def fill(handle: int) -> None:
                source.seek(0)
                with open(handle, "wb", closefd=False) as file:
                    _copy(source, file)

            self._write(key, fill, _replace)

    def download(self, key: str, path: Path) -> None:
        with open(self._open(check_key(key)), "rb") as source:
            if not confined.is_file(os.fstat(source.fileno())):
                raise self._absent(key)
            with arriving(path) as file:
                _copy(source, file)

    def adopt(self, path: Path, key: str) -> None:
        """Give a file that lies on the store's own disk its name, durable."""

        def place(folder: int, name: str) -> bool:
            _sync_file(path)
            os.replace(path, name, dst_dir_fd=folder)
            _sync(folder)
            return True

        self._place(key, place, lambda: path.exists())

    def _open(self, key: str) -> int:
        """Without a file object: `status` opens thousands of small objects."""
        handle = self._root.attempt(key)
        if handle >= 0:
            return handle
        for _ in range(_TRIES if handle != -errno.ENOENT else 0):
            try:
                return self._root.open(key)
            except OSError as error:
                if _is_absent(error):
                    break
                if error.errno != errno.ESTALE:
                    raise self._refusal(error, key) from error
        raise self._absent(key)

    def _absent(self, key: str) -> NotFound:
        return NotFound(f"{key} does not exist in {self.url}")

    def _is_anothers(self, key: str, data: bytes) -> bool:
        """A look before a create, so that one already lost costs no write."""
        try:
            return self.get(key).data != data
        except NotFound:
            return False

    def _write(self, key: str, fill: Callable[[int], None], place: Callable[[int, str, str], bool]) -> bool:
        return self._place(key, lambda folder, name: _write_once(folder, name, fill, place))

    def _place(
        self, key: str, write: Callable[[int, str], bool], may_again: Callable[[], bool] = lambda: True
    ) -> bool:
        """Try again while the directory is removed, or the key's holder deleted, under our hands."""
        folder, _, name = check_key(key).rpartition("/")
        for _ in range(_TRIES):
            try:
                handle = self._root.folder(folder)
                try:
                    return write(handle, name)
                finally:
                    os.close(handle)
            except OSError as error:
                if error.errno not in _AGAIN or not may_again():
                    raise self._refusal(error, key) from error
            self._make(folder, key)
        raise StoreError(f"{key} could not be written in {self.url}: its folder vanishes again and again")

    def _make(self, folder: str, key: str) -> None:
        try:
            _make_durable(self.url)
            with self._root.descriptor() as root:
                os.close(confined.make_below(root, folder, _sync))
        except FileNotFoundError:
            return  # removed again by a delete; the writer comes back
        except OSError as error:
            raise self._refusal(error, key) from error

    def _delete(self, folder: str, names: Sequence[str]) -> None:
        handle = self._root.folder(folder)
        try:
            for name in names:
                try:
                    os.unlink(name, dir_fd=handle)
                except OSError as error:
                    if error.errno not in _ABSENT | {errno.ESTALE}:
                        raise
        finally:
            os.close(handle)

    def _remove_emptied(self, folder: str) -> None:
        while folder:
            parent, _, name = folder.rpartition("/")
            try:
                handle = self._root.folder(parent)
                try:
                    os.rmdir(name, dir_fd=handle)
                finally:
                    os.close(handle)
            except OSError:
                return
            folder = parent

    def _refusal(self, error: OSError, key: str) -> StoreError:
        if error.errno == errno.EFBIG:
            return StoreTooLarge(f"{self.url} takes no file as large as {key}", "use another store")
        reason, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
        return StoreError(f"{self.url}: {key or 'the folder'}: {reason}", hint)


def _is_absent(error: OSError) -> bool:
    """Whether nothing is there. A link right in the store's folder is said: somebody wants it followed."""
    return error.errno in _ABSENT or (error.errno == errno.ELOOP and "/" in str(error.filename))


def _read(handle: int, start: int, stop: int) -> bytes:
    """Bytes [start, stop) of the file, in as many reads as the kernel wants."""
    data = os.pread(handle, max(stop - start, 0), start)
    start += len(data)
    while start < stop and (piece := os.pread(handle, stop - start, start)):
        data += piece
        start += len(piece)
    return data


def _copy(source: BinaryIO, to: BinaryIO) -> None:
    import shutil  # with every kind of archive; most looks at a store copy no file

    shutil.copyfileobj(source, to, BLOCK)


def _write_once(
    folder: int, name: str, fill: Callable[[int], None], place: Callable[[int, str, str], bool]
) -> bool:
    temp = TEMPORARY + os.urandom(8).hex()
    handle = os.open(temp, confined.CREATE, 0o666, dir_fd=folder)
    try:
        try:
            fill(handle)
            os.fsync(handle)
        finally:
            os.close(handle)
        won = place(folder, temp, name)
    except BaseException:
        _remove_if_there(folder, temp)
        raise
    if won:
        _sync(folder)
    return won


def _write_all(handle: int, data: bytes) -> None:
    """Without a file object, which looks at the file three times before it writes."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


def _replace(folder: int, temp: str, name: str) -> bool:
    os.replace(temp, name, src_dir_fd=folder, dst_dir_fd=folder)
    return True


def _create(folder: int, temp: str, name: str) -> bool:
    """Link is believed by its effect only: over a network its answer may be that of a repetition."""
    answer = OSError(errno.ENOTSUP, "link had no effect")
    try:
        os.link(temp, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        answer = error
    if os.stat(temp, dir_fd=folder, follow_symlinks=False).st_nlink == 2:
        won = True
    elif _is_there(folder, name):
        won = _bytes(folder, name) == _bytes(folder, temp)
    elif answer.errno in _NO_LINKS:
        raise StoreError(
            "the file system of the store's folder has no hard links, so no two workers can share it",
            "use a folder on ext4, xfs, btrfs, ZFS or NFS, or a bucket such as s3://bucket/prefix",
        )
    else:
        raise answer
    _remove_if_there(folder, temp)
    return won


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        return True
    except FileNotFoundError:
        return False


def _bytes(folder: int, name: str) -> bytes:
    with open(os.open(name, confined.READ, dir_fd=folder), "rb") as file:
        if not confined.is_file(os.fstat(file.fileno())):
            raise StoreError(f"{name} in the store is not a file", "remove it there")
        return file.read()


def _remove_if_there(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        pass


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
    handle = os.open(path, confined.READ)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(path: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
        return
    try:
        _sync(handle)
    finally:
        os.close(handle)


def _sync(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
