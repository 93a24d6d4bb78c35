"""The store in a bucket (S3, GCS, Azure), through obstore, of which this is the only importer.

The driver repeats requests by itself and a server may answer without having stored, or store without
answering. So a create that is not plainly confirmed is settled by reading the key: own bytes = won,
another's = lost, absent = again with the same key and bytes. Whatever the driver reports is retried
within one bound, then StoreUnreachable. Credentials and endpoint come from the environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from hostler.errors import StoreError, StoreUnreachable, UsageError
from hostler.store.answer import Answer, explain, read_answer
from hostler.store.base import Blob, Entry, NotFound
from hostler.store.bucketlist import offset_for, past, server_folder
from hostler.store.key import check_key
from hostler.store.localfile import arriving, open_local
from hostler.store.retry import Patience, attempts

T = TypeVar("T")

KINDS: dict[str, Any] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}

_FAULTS = (BaseError, FileNotFoundError, ValueError)
_PAGE = 500  # divides the servers' 1,000, so that the first rows cost one request
_PART = 8 << 20
_MOST_PARTS = 9_000
_UNSETTLED = (Answer.TAKEN, Answer.BUSY, Answer.ABSENT)


class BucketStore:
    """s3://bucket/prefix: all keys lie under the prefix. Passes `hostler.testing.store_contract`."""

    def __init__(self, url: str, patience: Patience | None = None) -> None:
        self._scheme, _, rest = url.partition("://")
        self._bucket, _, prefix = rest.partition("/")
        self._prefix = prefix.strip("/")
        if self._scheme not in KINDS or not self._bucket:
            raise UsageError(f"{url!r} names no bucket", "like s3://bucket/prefix")
        self.url = f"{self._scheme}://{self._bucket}/{self._prefix}".rstrip("/")
        self._patience = patience or Patience()

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        check_key(key)
        return self._call(key, lambda: self._get(key, start, end))

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        check_key(key)
        client = self._quick if len(data) <= _PART else self._bulk
        if if_absent:
            return self._create(client, key, data)
        self._call(key, lambda: obstore.put(client, key, data))
        return True

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        rows = self._deep(prefix, after) if deep else self._shallow(prefix)
        for row in rows:
            if row.key.startswith(prefix) and row.key > after:
                yield row
            elif past(row.key, prefix):
                return

    def delete(self, *keys: str) -> None:
        names = [check_key(key) for key in keys]
        try:
            self._call(names[0] if names else "", lambda: obstore.delete(self._quick, names))
        except NotFound:  # not every server takes the deletion of nothing for done
            self._delete_each(names)

    def upload(self, path: Path, key: str) -> None:
        check_key(key)
        with open_local(path) as file:
            size = file.seek(0, 2)
            part = max(_PART, math.ceil(size / _MOST_PARTS))
            self._call(key, lambda: self._upload(file, key, part))

    def download(self, key: str, path: Path) -> None:
        check_key(key)
        self._call(key, lambda: self._download(key, path))

    @cached_property
    def _quick(self) -> Any:
        """For small requests: a silent server is given up on within the bound."""
        share = self._patience.bound / 2
        return self._client({"timeout": timedelta(seconds=share)}, share)

    @cached_property
    def _bulk(self) -> Any:
        """For large ones: as long as bytes move, there is time."""
        options = {"timeout": timedelta(days=7), "read_timeout": timedelta(seconds=120)}
        return self._client(options, max(self._patience.bound, 60.0))

    def _client(self, options: dict[str, Any], bound: float) -> Any:
        connect = timedelta(seconds=min(5.0, max(bound / 2, 0.1)))
        retry = {
            "max_retries": 3,
            "retry_timeout": timedelta(seconds=bound),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        }
        try:
            return KINDS[self._scheme](
                self._bucket,
                prefix=self._prefix or None,
                client_options={"allow_http": True, "connect_timeout": connect, **options},
                retry_config=retry,
            )
        except _FAULTS as error:
            raise explain(Answer.REFUSED, self.url, "", str(error)) from error

    def _call(self, key: str, action: Callable[[], T]) -> T:
        """The action's result; asked again while the store is busy, else its refusal."""
        refusal: StoreError | None = None
        for _ in attempts(self._patience):
            try:
                return _guarded(action)
            except _FAULTS as error:
                answer = _answer(error)
                refusal = explain(answer, self.url, key, str(error))
                if answer is not Answer.BUSY:
                    raise refusal from error
        raise refusal or StoreUnreachable(f"{self.url} does not answer")

    def _get(self, key: str, start: int, end: int | None) -> Blob:
        whole = start == 0 and end is None
        if not whole and end is not None and end <= start:
            return Blob(b"", str(obstore.head(self._quick, key)["e_tag"]))
        wanted: Any = {} if whole else {"range": {"offset": start} if end is None else (start, end)}
        try:
            got = obstore.get(self._quick, key, options=wanted)
            return Blob(bytes(got.bytes()), str(got.meta["e_tag"]))
        except BaseError as error:
            if _answer(error) is not Answer.NOTHING_THERE:
                raise
            return Blob(b"", str(obstore.head(self._quick, key)["e_tag"]))

    def _create(self, client: Any, key: str, data: bytes) -> bool:
        for _ in attempts(self._patience):
            settled = self._create_once(client, key, data)
            if settled is not None:
                return settled
        raise StoreUnreachable(
            f"{self.url} did not tell who holds {key}", "check the network, then try again"
        )

    def _create_once(self, client: Any, key: str, data: bytes) -> bool | None:
        """None: unknown, or known to be stored by nobody."""
        try:
            _guarded(lambda: obstore.put(client, key, data, mode="create"))
            return True
        except _FAULTS as error:
            self._raise_unless_unsettled(error, key)
        try:
            return bytes(obstore.get(client, key).bytes()) == data
        except _FAULTS as error:
            self._raise_unless_unsettled(error, key)
            return None

    def _raise_unless_unsettled(self, error: Exception, key: str) -> None:
        if _answer(error) not in _UNSETTLED:
            raise explain(_answer(error), self.url, key, str(error)) from error

    def _deep(self, prefix: str, after: str) -> Iterator[Entry]:
        """Page by page; after a fault it goes on behind the last row it gave."""
        reached = offset_for(prefix, after)
        stream: Iterator[Sequence[Any]] | None = None

        def page() -> Sequence[Any] | None:
            nonlocal stream
            fresh, stream = stream or self._stream(prefix, reached), None
            rows = next(fresh, None)
            stream = fresh
            return rows

        while rows := self._call(prefix, page):
            yield from map(_entry, rows)
            reached = rows[-1]["path"]

    def _stream(self, prefix: str, offset: str) -> Iterator[Sequence[Any]]:
        return iter(obstore.list(self._quick, server_folder(prefix), offset=offset or None, chunk_size=_PAGE))

    def _shallow(self, prefix: str) -> Iterator[Entry]:
        found = self._call(prefix, lambda: obstore.list_with_delimiter(self._quick, server_folder(prefix)))
        rows = [Entry(f"{name}/", 0, "", 0.0) for name in found["common_prefixes"]]
        rows += map(_entry, found["objects"])
        return iter(sorted(rows, key=lambda row: row.key))

    def _delete_each(self, keys: Sequence[str]) -> None:
        for key in keys:
            try:
                self._call(key, lambda key=key: obstore.delete(self._quick, key))  # type: ignore[misc]
            except NotFound:
                continue

    def _upload(self, file: Any, key: str, part: int) -> None:
        file.seek(0)
        obstore.put(self._bulk, key, file, chunk_size=part, max_concurrency=4)

    def _download(self, key: str, path: Path) -> None:
        got = obstore.get(self._bulk, key)
        with arriving(path) as file:
            for block in got.stream(min_chunk_size=_PART):
                file.write(block)
            if file.tell() != got.meta["size"]:
                raise BaseError(f"{key} ended after {file.tell()} of {got.meta['size']} bytes")


def _guarded(action: Callable[[], T]) -> T:
    """The driver panics, outside Exception, over an endpoint that is no URL."""
    try:
        return action()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError("the endpoint is not a URL such as https://host:port") from None


def _answer(error: BaseException) -> Answer:
    return read_answer(type(error).__name__, str(error))


def _entry(row: Any) -> Entry:
    return Entry(
        row["path"], row["size"], str(row["e_tag"] or row["version"]), row["last_modified"].timestamp()
    )
