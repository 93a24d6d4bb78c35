"""The seam to every store: six methods over bytes. What all stores share: the form of a key, the local end of
upload and download.

No store offers compare-and-swap: what changes gets a new number in its key. Every implementation
passes `hostler.testing.store_contract`. Parts of a key are [A-Za-z0-9._=+,@-], never '.' or '..', and never
begin like a temporary file of the folder store: so a key can neither leave its store nor be hidden from a
listing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from hostler import frozen
from hostler.errors import MachineError, MissingError, StoreError
from hostler.frozen import dataclass

TEMPORARY = ".tmp-"
BLOCK = 1 << 20

_PART = r"(?!\.{1,2}(?:/|\Z))(?!\.tmp-)[A-Za-z0-9._=+,@-]+"
_KEY = re.compile(rf"{_PART}(?:/{_PART})*")


class NotFound(StoreError):
    """No object exists under this key."""


@dataclass(frozen=True)
class Entry:
    """A row of a listing. A folder row (shallow listing only) has a key ending in '/', and an etag
    only where the store knows when a name in it last came or went."""

    key: str
    size: int
    etag: str  # changes with every write of the key
    modified: float  # by the store's own clock, seconds since 1970


@frozen.dataclass(frozen=True)
class Blob:
    data: bytes
    etag: str


class Store(Protocol):
    """Keys are parts with '/' between them, none at the beginning."""

    url: str

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        """Bytes [start, end) of the object; NotFound if there is none."""

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        """Write whole and durable. With if_absent: True only if the key now holds exactly these bytes
        by this write; False if another's stand there. The bytes of an if_absent write must be unique to it
        (they carry a token), because a lost answer is settled by reading the key back."""

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        """Entries whose key starts with prefix and is greater than `after`, in name order, read lazily.
        deep=False: only up to the next '/', deeper keys folded into one folder row each."""

    def delete(self, *keys: str) -> None:
        """Remove these exact keys; an absent one is not an error."""

    def upload(self, path: Path, key: str) -> None:
        """A local file of any size into the store, whole or not at all."""

    def download(self, key: str, path: Path) -> None:
        """An object into a local file, whole or not at all; NotFound if there is none."""


def keys(store: Store, prefix: str, after: str = "") -> Iterable[str]:
    """Keys of a listing: a store that has them without a row for each is asked for them alone."""
    alone = getattr(store, "keys", None)
    return alone(prefix, after) if alone else (entry.key for entry in store.list(prefix, after))


def get_into(store: Store, key: str, memory: memoryview) -> int:
    """Read an object into memory that is there, as far as it has room: how many bytes these were. Without a
    copy, where the store can."""
    into = getattr(store, "get_into", None)
    if into is not None:
        return int(into(key, memory))
    data = store.get(key, end=len(memory)).data
    memory[: len(data)] = data
    return len(data)


def put_again(store: Store, data: bytes, key: str, known: str) -> None:
    """Put bytes that the store has under another key already: without writing them, where it can. For copies
    that decide nothing: this one may be gone after the machine of a folder has crashed."""
    named = getattr(store, "put_again", None)
    if named is None or not named(key, known):
        store.put(key, data)


def may_begin_a_key(prefix: str) -> bool:
    """Whether a key can start with it: its folders must be legal, so that none leads out of the store."""
    folders, slash, _ = prefix.rpartition("/")
    return not slash or _KEY.fullmatch(folders) is not None


def check_key(key: str) -> str:
    """The key itself; StoreError if it is not a key."""
    if not _KEY.fullmatch(key):
        raise StoreError(
            f"{key!r} is not a key", "parts of letters, digits and ._=+,@- with '/' between them"
        )
    return key


# A local file that is read, or that arrives whole or not at all. Trouble with it is this machine's
# (MissingError, MachineError), never the store's.


def open_local(path: Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except (FileNotFoundError, NotADirectoryError):
        raise MissingError(f"{path} does not exist") from None
    except OSError as error:
        raise MachineError(f"{path} cannot be read: {error.strerror}") from error


@contextmanager
def arriving(path: Path) -> Iterator[BinaryIO]:
    """A file to write into; it takes its name, durable, only when the block ends without an error."""
    folder = os.path.dirname(os.path.abspath(path))
    temp = os.path.join(folder, TEMPORARY + os.urandom(8).hex())
    try:
        os.makedirs(folder, exist_ok=True)
        with open(temp, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, path)
    except OSError as error:
        raise MachineError(
            f"{path} cannot be written: {error.strerror}", "free disk space, or fix the rights"
        ) from error
    finally:
        remove_if_there(temp)


def remove_if_there(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
