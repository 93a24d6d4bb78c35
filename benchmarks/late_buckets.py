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
from hostler.emulators.gcs.route import Kind

TESTS = Path(__file__).resolve().parents[1] / "tests"


@dataclass(frozen=True)
class LateBucket:
    url: str
    begin: Callable[[], None]  # be late, and count from now on
    finish: Callable[[], None]
    count: Callable[[], Counter[str]]

    @contextmanager
    def late(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.finish()

    def asked(self) -> Counter[str]:
        """Requests while it was late, by the kind of object; heartbeats are left out."""
        return Counter({kind: count for kind, count in self.count().items() if kind != "alive"})


@contextmanager
def gcs(latency: float) -> Iterator[LateBucket]:
    with GcsEmulator("scale") as bucket:
        os.environ.update(bucket.environ())
        seen: Counter[str] = Counter()

        def begin() -> None:
            bucket.counts.clear()
            bucket.faults.always(slow(latency))

        def finish() -> None:
            for kind, key, number in bucket.counts.rows():
                if kind != Kind.BUCKET:
                    seen[_kind(key)] += number
            bucket.faults.clear()

        yield LateBucket("gs://scale/store", begin, finish, lambda: seen)


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

        def begin() -> None:
            proxy.seen.clear()
            proxy.choose = lambda method, path: proxies.Fault.SLOW_BEFORE

        def finish() -> None:
            proxy.choose = lambda method, path: None
            seen.update(_kind(_key(path, servers.BUCKET)) for _, path in list(proxy.seen))

        seen: Counter[str] = Counter()
        yield LateBucket(f"s3://{servers.BUCKET}/store", begin, finish, lambda: seen)


def _key(path: str, bucket: str) -> str:
    """The key that a request is for, or the prefix of a list."""
    split = urlsplit(path)
    listed = parse_qs(split.query).get("prefix")
    return listed[0] if listed else unquote(split.path).removeprefix(f"/{bucket}/")


def _kind(key: str) -> str:
    """The folder of the store, of a sweep or of a run that a key lies in."""
    parts = key.removeprefix("store/").split("/")
    return parts[2] if parts[0] in ("sweeps", "runs") and len(parts) > 3 else parts[0]
