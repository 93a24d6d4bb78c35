"""Everything the emulator holds: buckets and what is being uploaded, under one lock.

A write checks its conditions and takes effect in one step: of racing writers with the same condition
exactly one succeeds. Generations only grow, over all buckets.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from hostler.emulators.gcs.bucket import Bucket, Page, Query
from hostler.emulators.gcs.conditions import Conditions
from hostler.emulators.gcs.message import conflict, no_bucket, no_object, no_upload
from hostler.emulators.gcs.objects import Object


@dataclass(frozen=True)
class Content:
    """Content and facts of a write."""

    data: bytes
    content_type: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    composite: bool = False


@dataclass
class Upload:
    """An upload under way: XML's parts by number, or JSON's bytes so far."""

    bucket: str
    name: str
    content_type: str | None
    conditions: Conditions = field(default_factory=Conditions)
    metadata: Mapping[str, str] = field(default_factory=dict)
    parts: dict[int, bytes] = field(default_factory=dict)
    received: bytearray = field(default_factory=bytearray)
    done: Object | None = None


class Storage:
    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.lock = threading.RLock()
        self.stored = 0
        self._clock = clock
        self._generation = 0
        self._buckets: dict[str, Bucket] = {}
        self._uploads: dict[str, Upload] = {}

    def make_bucket(self, name: str) -> Bucket:
        with self.lock:
            if name in self._buckets:
                raise conflict("BucketAlreadyOwnedByYou", "You already own this bucket.")
            return self._buckets.setdefault(name, Bucket(name, self._clock()))

    def remove_bucket(self, name: str, *, force: bool = False) -> None:
        with self.lock:
            if len(self.bucket(name)) and not force:
                raise conflict("BucketNotEmpty", "The bucket you tried to delete is not empty.")
            del self._buckets[name]
            self._uploads = {i: u for i, u in self._uploads.items() if u.bucket != name}

    def bucket(self, name: str) -> Bucket:
        with self.lock:
            if name not in self._buckets:
                raise no_bucket()
            return self._buckets[name]

    def buckets(self) -> list[Bucket]:
        with self.lock:
            return [self._buckets[name] for name in sorted(self._buckets)]

    def page(self, bucket: str, query: Query) -> Page:
        with self.lock:
            return self.bucket(bucket).page(query)

    def find(self, bucket: str, name: str) -> Object | None:
        with self.lock:
            return self.bucket(bucket).get(name)

    def get(self, bucket: str, name: str, generation: str | int | None = None) -> Object:
        """The object, of that generation if one is given: JSON bodies may carry it as a number."""
        found = self.find(bucket, name)
        if found is None or (generation is not None and str(generation) != str(found.generation)):
            raise no_object(bucket, name)
        return found

    def write(self, bucket: str, name: str, content: Content, conditions: Conditions) -> Object:
        with self.lock:
            conditions.check(self.find(bucket, name))
            now = self._clock()
            self._generation = max(self._generation + 1, int(now * 1e6))
            self.stored += 1
            made = Object(
                bucket,
                name,
                content.data,
                self._generation,
                now,
                now,
                content.content_type or "application/octet-stream",
                content.metadata,
                composite=content.composite,
            )
            self.bucket(bucket).put(made)
            return made

    def patch(self, found: Object, metadata: Mapping[str, str], content_type: str) -> Object:
        """The next metageneration of what is there; the caller holds the lock since it looked."""
        changed = replace(
            found,
            metadata=metadata,
            content_type=content_type,
            metageneration=found.metageneration + 1,
            updated=self._clock(),
        )
        self.bucket(found.bucket).put(changed)
        return changed

    def remove(self, bucket: str, name: str, conditions: Conditions, generation: str | None = None) -> None:
        with self.lock:
            conditions.check(self.get(bucket, name, generation))
            self.bucket(bucket).remove(name)

    def begin(self, upload: Upload) -> str:
        with self.lock:
            self.bucket(upload.bucket)
            identity = secrets.token_hex(16)
            self._uploads[identity] = upload
            return identity

    def upload(self, identity: str) -> Upload:
        with self.lock:
            if identity not in self._uploads:
                raise no_upload()
            return self._uploads[identity]

    def forget(self, identity: str) -> None:
        with self.lock:
            self._uploads.pop(identity, None)

    def pending(self) -> list[str]:
        """Names of uploads begun and neither finished nor given up."""
        with self.lock:
            return sorted(upload.name for upload in self._uploads.values() if upload.done is None)
