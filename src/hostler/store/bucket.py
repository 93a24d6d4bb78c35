"""The store in a bucket (S3, GCS, Azure), through obstore, which only this and `client.py` import.

The driver repeats requests by itself and a server may answer without having stored, or store without
answering. So a create that is not plainly confirmed is settled by reading the key: own bytes = won,
another's = lost, absent = again with the same key and bytes. Whatever the driver reports is retried
within one bound, then StoreUnreachable. A token the server no longer takes is replaced once per request.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from hostler import env
from hostler.errors import StoreError, StoreUnreachable, UsageError
from hostler.frozen import dataclass
from hostler.store.answer import Answer, explain, read_answer
from hostler.store.base import Blob, Entry, NotFound, arriving, check_key, may_begin_a_key, open_local
from hostler.store.retry import RetryTime, attempts

T = TypeVar("T")

_FAULTS = (BaseError, FileNotFoundError, ValueError)
_PAGE = 500  # divides the servers' 1,000, so that the first rows cost one request
_PART = 8 << 20
_MOST_PARTS = 9_000
_LATER = (Answer.BUSY,)
_UNSETTLED = (Answer.TAKEN, Answer.BUSY, Answer.ABSENT)
_UPLOAD_GONE = (Answer.BUSY, Answer.ABSENT)  # the upload's parts are gone: put together already, or removed


class BucketStore:
    """s3://bucket/prefix: all keys lie under the prefix. Passes `hostler.testing.store_contract`."""

    def __init__(self, url: str, patience: RetryTime | None = None) -> None:
        self._address = address_of(url)
        self.url = str(self._address)
        self._patience = patience or RetryTime()
        self._clients = Clients(self._address, self._patience.bound)

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        check_key(key)
        return self._call(key, lambda clients: _get(clients.quick, key, start, end))

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        check_key(key)
        if if_absent:
            vain = f"did not tell who holds {key}"
            return self._call(key, lambda c: _create(_fit(c, data), key, data), _UNSETTLED, vain)
        self._call(key, lambda c: obstore.put(_fit(c, data), key, data))
        return True

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        if not may_begin_a_key(prefix):
            return
        rows = self._deep(prefix, after) if deep else self._shallow(prefix)
        for row in rows:
            if row.key.startswith(prefix) and row.key > after:
                yield row
            elif past(row.key, prefix):
                return

    def delete(self, *keys: str) -> None:
        names = [check_key(key) for key in keys]
        try:
            self._call(names[0] if names else "", lambda clients: obstore.delete(clients.quick, names))
        except NotFound:  # not every server takes the deletion of nothing for done
            self._delete_each(names)

    def upload(self, path: Path, key: str) -> None:
        check_key(key)
        with open_local(path) as file:
            part = max(_PART, math.ceil(file.seek(0, 2) / _MOST_PARTS))
            vain = f"did not take {key} whole"
            self._call(key, lambda clients: _upload(clients.bulk, file, key, part), _UPLOAD_GONE, vain)

    def download(self, key: str, path: Path) -> None:
        check_key(key)
        self._call(key, lambda clients: _download(clients.bulk, key, path))

    def _call(
        self, key: str, action: Callable[[Clients], T], again: Sequence[Answer] = _LATER, vain: str = ""
    ) -> T:
        """The action's result; repeated after the answers in `again`, else the refusal. `vain`: what to say
        when the bound is over and the last answer would mislead."""
        refusal: StoreError | None = None
        renewed = False
        for _ in attempts(self._patience):
            clients = self._clients
            try:
                return _guarded(lambda clients=clients: action(clients))  # type: ignore[misc]
            except _FAULTS as error:
                answer = _answer(error)
                if answer is Answer.DENIED and _is_gone(clients.quick):
                    answer = Answer.NO_BUCKET
                refusal = explain(answer, self.url, key, str(error))
                if answer is Answer.STALE and not renewed:
                    renewed = self._renew(clients)
                elif answer not in again:
                    raise refusal from error
        if vain:
            raise StoreUnreachable(f"{self.url} {vain}", "check the network, then try again") from refusal
        raise refusal or StoreUnreachable(f"{self.url} does not answer")

    def _renew(self, used: Clients) -> bool:
        """New clients ask for a new token; of several threads one is enough to make them."""
        if self._clients is used:
            self._clients = Clients(self._address, self._patience.bound)
        return True

    def _deep(self, prefix: str, after: str) -> Iterator[Entry]:
        """Page by page; after a fault it goes on behind the last row it gave."""
        reached = offset_for(prefix, after)
        stream: Iterator[Sequence[Any]] | None = None

        def page(clients: Clients) -> Sequence[Any] | None:
            nonlocal stream
            fresh, stream = stream or _stream(clients.quick, prefix, reached), None
            rows = next(fresh, None)
            stream = fresh
            return rows

        while rows := self._call(prefix, page):
            yield from map(_entry, rows)
            reached = rows[-1]["path"]

    def _shallow(self, prefix: str) -> Iterator[Entry]:
        folder = server_folder(prefix)
        found = self._call(prefix, lambda clients: obstore.list_with_delimiter(clients.quick, folder))
        rows = [Entry(f"{name}/", 0, "", 0.0) for name in found["common_prefixes"]]
        rows += map(_entry, found["objects"])
        return iter(sorted(rows, key=lambda row: row.key))

    def _delete_each(self, keys: Sequence[str]) -> None:
        for key in keys:
            try:
                self._call(key, lambda clients, key=key: obstore.delete(clients.quick, key))  # type: ignore[misc]
            except NotFound:
                continue


def _is_gone(client: Any) -> bool:
    """Whether the bucket is missing: some servers (SeaweedFS) call a write to none denied, but not a list."""
    try:
        _guarded(lambda: next(_stream(client, "", ""), None))
    except _FAULTS as error:
        return _answer(error) is Answer.NO_BUCKET
    return False


def _fit(clients: Clients, data: bytes) -> Any:
    return clients.quick if len(data) <= _PART else clients.bulk


def _get(client: Any, key: str, start: int, end: int | None) -> Blob:
    whole = start == 0 and end is None
    if not whole and end is not None and end <= start:
        return _nothing_of(client, key)
    wanted: Any = {} if whole else {"range": {"offset": start} if end is None else (start, end)}
    try:
        got = obstore.get(client, key, options=wanted)
        return Blob(bytes(got.bytes()), _etag(got.meta))
    except BaseError as error:
        if _answer(error) is not Answer.NOTHING_THERE:
            raise
        return _nothing_of(client, key)


def _nothing_of(client: Any, key: str) -> Blob:
    """No bytes of an object that is there. Not by HEAD: its answer cannot tell that the bucket is gone."""
    return Blob(b"", _etag(obstore.get(client, key).meta))


def _create(client: Any, key: str, data: bytes) -> bool:
    """Whether the key holds these bytes; an error that settles nothing if that is not known."""
    try:
        _guarded(lambda: obstore.put(client, key, data, mode="create"))
        return True
    except _FAULTS as error:
        if _answer(error) not in _UNSETTLED:
            raise
    return bytes(obstore.get(client, key).bytes()) == data


def _stream(client: Any, prefix: str, offset: str) -> Iterator[Sequence[Any]]:
    return iter(obstore.list(client, server_folder(prefix), offset=offset or None, chunk_size=_PAGE))


def _upload(client: Any, file: Any, key: str, part: int) -> None:
    file.seek(0)
    obstore.put(client, key, file, chunk_size=part, max_concurrency=4)


def _download(client: Any, key: str, path: Path) -> None:
    got = obstore.get(client, key)
    with arriving(path) as file:
        for block in got.stream(min_chunk_size=_PART):
            file.write(block)
        if file.tell() != got.meta["size"]:
            raise BaseError(f"{key} ended after {file.tell()} of {got.meta['size']} bytes")


def _guarded(action: Callable[[], T]) -> T:
    """The driver panics, outside Exception, over an endpoint that is not a URL."""
    try:
        return action()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError("the endpoint is not a URL such as https://host:port") from None


def _answer(error: BaseException) -> Answer:
    return read_answer(type(error).__name__, str(error))


def _entry(row: Any) -> Entry:
    return Entry(row["path"], row["size"], _etag(row), row["last_modified"].timestamp())


def _etag(facts: Any) -> str:
    """Without its quotes: Azure's listings leave them out, its reads do not."""
    return str(facts["e_tag"] or facts["version"]).strip('"')


# A string prefix in a server that lists by whole path segments: pure over strings.
#
# The segment above the prefix is listed, from just before the prefix on: so that neither what comes
# before nor what comes after costs a request. The caller filters; nothing here may lose a key.


_ALPHABET = "".join(
    sorted("+,-./=@_" + "0123456789" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "abcdefghijklmnopqrstuvwxyz")
)
_LONG = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9._=+,@/-]")


def server_folder(prefix: str) -> str | None:
    """The whole segments of a prefix, as the server takes them."""
    return prefix.rpartition("/")[0] or None


def offset_for(prefix: str, after: str) -> str:
    """A legal key that no wanted key comes before or equals; '' for none."""
    foreign = _FOREIGN.search(after)
    given = after[: foreign.start()] if foreign else after
    return max(given.rstrip("/"), _just_before(prefix))


def past(key: str, prefix: str) -> bool:
    """Whether keys in name order can no longer start with the prefix."""
    return key[: len(prefix)] > prefix


def _just_before(prefix: str) -> str:
    if not prefix or prefix.endswith("/"):
        return ""
    at = _ALPHABET.find(prefix[-1])
    return prefix[:-1] + _ALPHABET[at - 1] + "z" * _LONG if at > 0 else ""


# obstore's client for a bucket: which kind, how patient, and where; used by `bucket.py` alone.
#
# Credentials and endpoints are read from the environment by the driver itself (AWS_*, GOOGLE_*, AZURE_*).
# Only STORAGE_EMULATOR_HOST, which Google's clients honour and the driver does not, is looked at here. The
# driver's own repetitions are kept few and short: the loop around them is `retry.py`.


KINDS: dict[str, Any] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}


@dataclass(frozen=True)
class BucketAddress:
    """scheme://bucket/prefix"""

    scheme: str
    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")


def address_of(url: str) -> BucketAddress:
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme not in KINDS or not bucket:
        raise UsageError(f"{url!r} names no bucket", "for example s3://bucket/prefix")
    return BucketAddress(scheme, bucket, prefix.strip("/"))


class Clients:
    """Made at first use. Each keeps its token, so a new pair is how a worthless token is replaced."""

    def __init__(self, address: BucketAddress, bound: float) -> None:
        self._address = address
        self._bound = bound

    @cached_property
    def quick(self) -> Any:
        """For small requests: a silent server is given up on within the bound."""
        share = self._bound / 2
        return _client(self._address, {"timeout": timedelta(seconds=share)}, share)

    @cached_property
    def bulk(self) -> Any:
        """For large ones: as long as bytes move, there is time."""
        options = {"timeout": timedelta(days=7), "read_timeout": timedelta(seconds=120)}
        return _client(self._address, options, max(self._bound, 60.0))


def _client(address: BucketAddress, options: dict[str, Any], bound: float) -> Any:
    connect = timedelta(seconds=min(5.0, max(bound / 2, 0.1)))
    return KINDS[address.scheme](
        address.bucket,
        prefix=address.prefix or None,
        client_options={"allow_http": True, "connect_timeout": connect, **options},
        retry_config={
            "max_retries": 2,
            "retry_timeout": timedelta(seconds=bound),
            "backoff": {
                "init_backoff": timedelta(milliseconds=50),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        },
        **_emulated(address.scheme),
    )


def _emulated(scheme: str) -> dict[str, Any]:
    """An emulator takes any token, unless a metadata server beside it gives out true ones."""
    host = env.gcs_emulator() if scheme == "gs" else None
    if not host:
        return {}
    endpoint = host if "://" in host else f"http://{host}"
    token = {} if env.metadata_server() else {"bearer_token": "emulator"}
    return {"base_url": endpoint, **token}
