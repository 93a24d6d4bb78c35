"""Data of any size in the store under its hash: as one object; if it is large, as parts and a list of them.

Each part is named by its own hash, and the list comes last: an upload that was cut goes on with the parts
that are missing, whoever does it, and nobody finds half of it. What arrives is checked part by part.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler.errors import DamagedError, MissingError, StoreError
from hostler.records import body, layout, reuse
from hostler.records.body import Record, decode, encode, taken_apart
from hostler.spec.names import is_part
from hostler.store import NotFound, Store

if TYPE_CHECKING:
    from concurrent.futures import Future

WHOLE = 64 << 20  # bytes up to which it is one object
PART = 16 << 20  # bytes of a part, at least
MOST = 1000  # parts
AT_ONCE = 4  # parts on their way

Sent = Callable[[int, bool], None]  # so many bytes more are in the store; whether they were there already


def part_size(size: int) -> int:
    """Size of all parts but the last, by the whole's size alone, so that every upload cuts alike. Pure."""
    return max(PART, -(-size // MOST))


def keep(store: Store, sha: str, now: float) -> bool:
    """Whether all of it is there, and stays: the object, or the list, of old data is written again."""
    keys = {layout.data(sha), layout.data_list(sha)}
    entry = next((e for e in store.list(layout.data(sha), deep=False) if e.key in keys), None)
    if entry is None or not reuse.is_old(entry.modified, now):
        return entry is not None
    try:
        data = store.get(entry.key).data
    except NotFound:  # removed right now
        return False
    store.put(entry.key, data)
    return entry.key == layout.data(sha) or _has_parts(store, sha, decode(data, entry.key))


def send(store: Store, path: Path, sha: str, sent: Sent = lambda size, old: None) -> None:
    """Bring the file, whose hash is known, with what of it is not in the store yet."""
    size = path.stat().st_size
    if size <= WHOLE:
        store.upload(path, layout.data(sha))
        _check_sizes(store, layout.data(sha), {layout.data(sha): size})
        sent(size, False)
        return
    sums = _send_parts(store, path, sha, size, sent)
    each = part_size(size)
    sizes = {layout.data_part(sha, n, one): min(each, size - n * each) for n, one in enumerate(sums)}
    _check_sizes(store, layout.data_parts(sha), sizes)
    store.put(layout.data_list(sha), encode({"size": size, "part": each, "parts": sums}))


def fetch(store: Store, sha: str, target: Path) -> None:
    """Into a local file; NotFound if it is not there, DamagedError if a part is not what was sent."""
    try:
        store.download(layout.data(sha), target)
        return
    except NotFound:
        key = layout.data_list(sha)
        record = body.checked(decode(store.get(key).data, key), _LIST, key, _LIST)
        sums, each, size = record["parts"], record["part"], record["size"]
        if (
            each <= 0
            or len(sums) > MOST
            or not all(map(_is_sum, sums))
            or not (len(sums) - 1) * each < size <= len(sums) * each
        ):
            raise _damaged(key, "is not a list of parts") from None
    from concurrent.futures import ThreadPoolExecutor  # brings logging along: only for large data

    with open(target, "wb") as file, ThreadPoolExecutor(AT_ONCE) as pool:
        descriptor = file.fileno()

        def bring(numbered: tuple[int, Any]) -> None:
            n, one = numbered
            data = _part(store, layout.data_part(sha, n, str(one)), str(one), min(each, size - n * each))
            os.pwrite(descriptor, data, n * each)

        list(pool.map(bring, enumerate(sums)))


_LIST = {"size": body.WHOLE, "part": body.WHOLE, "parts": body.ROWS}


def _is_sum(text: object) -> bool:
    return isinstance(text, str) and is_part(text)


def _has_parts(store: Store, sha: str, record: Record) -> bool:
    there = {entry.key for entry in store.list(layout.data_parts(sha))}
    with taken_apart(layout.data_list(sha)):
        return all(layout.data_part(sha, n, one) in there for n, one in enumerate(record["parts"]))


def _part(store: Store, key: str, sha: str, size: int) -> bytes:
    try:
        data = store.get(key, end=size + 1).data
    except NotFound:
        raise _damaged(key, "is not in the store any more") from None
    if len(data) != size or hashlib.sha256(data).hexdigest() != sha:
        raise _damaged(key, "is damaged: its bytes are not those that were uploaded")
    return data


def _damaged(key: str, what: str) -> DamagedError:
    listed = key.partition(".parts/")[0] + ".json"
    return DamagedError(f"{key} {what}", hint=f"remove it and {listed} from the store, and submit again")


def _send_parts(store: Store, path: Path, sha: str, size: int, sent: Sent) -> list[str]:
    """The hash of each part, all of which are in the store then."""
    from concurrent.futures import ThreadPoolExecutor

    there = {entry.key: entry.size for entry in store.list(layout.data_parts(sha))}
    whole, sums = hashlib.sha256(), list[str]()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        going: dict[Future[bool], int] = {}
        for n, data in enumerate(_pieces(path, part_size(size))):
            whole.update(data)
            sums.append(hashlib.sha256(data).hexdigest())
            key = layout.data_part(sha, n, sums[-1])
            if there.get(key) == len(data):
                sent(len(data), True)
                continue
            going[pool.submit(store.put, key, data)] = len(data)
            if len(going) >= AT_ONCE:
                _arrived(going, sent)
        while going:
            _arrived(going, sent)
    if whole.hexdigest() != sha:
        raise MissingError(
            f"{path} changed while it was sent", hint="send it again when nothing writes to it"
        )
    return sums


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while data := file.read(size):
            yield data


def _arrived(going: dict[Future[bool], int], sent: Sent) -> None:
    from concurrent.futures import FIRST_COMPLETED, wait

    for future in wait(going, return_when=FIRST_COMPLETED).done:
        future.result()
        sent(going.pop(future), False)


def _check_sizes(store: Store, prefix: str, sizes: dict[str, int]) -> None:
    """The store says itself that it holds every byte."""
    found = {entry.key: entry.size for entry in store.list(prefix)}
    for key, size in sizes.items():
        if found.get(key) != size:
            store.delete(key)
            raise StoreError(
                f"{key}: {size} bytes were sent, but the store holds {found.get(key, 'none')}",
                hint="run the same command again: it sends what is missing",
            )
