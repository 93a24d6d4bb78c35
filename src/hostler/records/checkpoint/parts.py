"""A large file in the store as several objects, so that an upload that broke off goes on where it was.

Several parts are on their way at once. `restorer` brings them back, and checks the whole file by its hash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hostler.store import Store

PART = 64 << 20
AT_ONCE = 4

Sent = set[tuple[str, str]]  # key, hash of the file it is of: what is in the store already


def count(size: int) -> int:
    """How many objects a file of this size is."""
    return max(1, -(-size // PART))


def send(store: Store, path: Path, keys: Sequence[str], sha256: str, sent: Sent) -> None:
    """The file under these keys; those in `sent` are not sent again, others join them once they are there."""

    def one(n: int) -> None:
        if (keys[n], sha256) in sent:
            return
        if len(keys) == 1:
            store.upload(path, keys[n])
        else:
            store.put(keys[n], _slice(path, n))
        sent.add((keys[n], sha256))

    _all(one, len(keys))


def _slice(path: Path, n: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(n * PART)
        return file.read(PART)


def _all(one: Callable[[int], None], number: int) -> None:
    if number == 1:
        one(0)
        return
    from concurrent.futures import ThreadPoolExecutor  # brings logging along: only for large files

    with ThreadPoolExecutor(min(AT_ONCE, number)) as pool:
        for done in [pool.submit(one, n) for n in range(number)]:
            done.result()
