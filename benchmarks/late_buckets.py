"""Buckets that answer late and count what they are asked: the GCS emulator, and SeaweedFS behind a proxy."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from hostler.emulators.gcs.emulator import GcsEmulator
from hostler.emulators.gcs.faults import slow
from hostler.emulators.gcs.route import Kind, Route

TESTS = Path(__file__).resolve().parents[1] / "tests"
PUT, GET, LIST, DELETE, OTHER = "put", "get", "list", "delete", "other"
_OPERATIONS = {Kind.WRITE: PUT, Kind.READ: GET, Kind.LIST: LIST, Kind.DELETE: DELETE}


@dataclass(frozen=True)
class Asked:
    """A request: what it does, and the key or the prefix that it is for."""

    operation: str
    key: str

    @property
    def folder(self) -> str:
        """The folder of the store, of a sweep or of a run that the key lies in."""
        return _kind(self.key)


@dataclass(frozen=True)
class LateBucket:
    url: str
    begin: Callable[[], None]  # be late, and note requests from now on
    finish: Callable[[], None]
    requests: list[Asked]  # while it was late, in their order

    @contextmanager
    def late(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.finish()

    def asked(self) -> Counter[str]:
        """Requests while it was late, by the kind of object; heartbeats are left out."""
        return Counter(asked.folder for asked in self.requests if asked.folder != "alive")


@contextmanager
def gcs(latency: float) -> Iterator[LateBucket]:
    with GcsEmulator("scale") as bucket:
        os.environ.update(bucket.environ())
        seen, add = list[Asked](), bucket.counts.add

        def note(at: Route) -> None:
            add(at)
            if at.kind != Kind.BUCKET:
                seen.append(Asked(_OPERATIONS.get(at.kind, OTHER), at.key))

        def begin() -> None:
            bucket.counts.add = note
            bucket.faults.always(slow(latency))

        def finish() -> None:
            bucket.counts.add = add
            bucket.faults.clear()

        yield LateBucket("gs://scale/store", begin, finish, seen)


@contextmanager
def seaweed(latency: float) -> Iterator[LateBucket]:
    """A real server on this machine; the proxy that delays its answers is that of the tests of faults."""
    sys.path[:0] = [str(TESTS), str(TESTS / "faults")]
    import proxy as proxies

    import servers

    with (
        tempfile.TemporaryDirectory() as folder,
        servers.seaweed(Path(folder)) as endpoint,
        proxies.running(endpoint) as proxy,
    ):
        os.environ.update({**servers.CREDENTIALS, "AWS_ENDPOINT_URL": proxy.url})
        proxy.delay = latency
        seen: list[Asked] = []

        def begin() -> None:
            proxy.seen.clear()
            proxy.choose = lambda method, path: proxies.Fault.SLOW_BEFORE

        def finish() -> None:
            proxy.choose = lambda method, path: None
            seen.extend(_asked(method, path, servers.BUCKET) for method, path in list(proxy.seen))

        yield LateBucket(f"s3://{servers.BUCKET}/store", begin, finish, seen)


def _asked(method: str, path: str, bucket: str) -> Asked:
    """A request of S3, by its first line."""
    split = urlsplit(path)
    listed = parse_qs(split.query).get("prefix")
    if listed:
        return Asked(LIST, listed[0])
    deletes = method == "DELETE" or (method == "POST" and split.query.startswith("delete"))
    operation = DELETE if deletes else {"PUT": PUT, "GET": GET}.get(method, OTHER)
    return Asked(operation, unquote(split.path).removeprefix(f"/{bucket}/"))


def _kind(key: str) -> str:
    """The folder of the store, of a sweep or of a run that a key lies in."""
    parts = key.removeprefix("store/").split("/")
    return parts[2] if parts[0] in ("sweeps", "runs") and len(parts) > 3 else parts[0]
