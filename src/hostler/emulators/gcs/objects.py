"""A generation of an object: immutable, so that a reader needs no lock.

As in GCS, the XML ETag is the content's MD5 (equal bytes, equal tag), and only an object put together
from parts gets one of its generation; the JSON etag changes with generation and metageneration.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timezone
from functools import cached_property
from urllib.parse import quote

from hostler.frozen import dataclass
from hostler.trackers.crc32c import crc32c

SUMMED = 1 << 20  # above it, the XML API tells no CRC-32C: it would cost seconds
LARGE = 1 << 16  # above it, the CRC-32C of some bytes is computed once
_sums: dict[bytes, str] = {}  # MD5 of large contents → their CRC-32C


@dataclass(frozen=True)
class Object:
    bucket: str
    name: str
    data: bytes
    generation: int
    created: float
    updated: float
    content_type: str = "application/octet-stream"
    metadata: Mapping[str, str] = field(default_factory=dict)
    metageneration: int = 1
    composite: bool = False

    @cached_property
    def md5(self) -> str:
        return base64.b64encode(hashlib.md5(self.data).digest()).decode()

    @cached_property
    def crc32c(self) -> str:
        if len(self.data) <= LARGE:
            return _sum_of(self.data)
        known = hashlib.md5(self.data).digest()
        if known not in _sums:
            _sums[known] = _sum_of(self.data)
        return _sums[known]

    @property
    def json_etag(self) -> str:
        return base64.b64encode(f"{self.generation}/{self.metageneration}".encode()).decode()

    @property
    def xml_etag(self) -> str:
        return f'"{self.json_etag}"' if self.composite else f'"{hashlib.md5(self.data).hexdigest()}"'

    def resource(self, base: str) -> dict[str, object]:
        """The object as the JSON API shows it."""
        path = f"b/{self.bucket}/o/{quote(self.name, safe='')}"
        shown: dict[str, object] = {
            "kind": "storage#object",
            "id": f"{self.bucket}/{self.name}/{self.generation}",
            "selfLink": f"{base}/storage/v1/{path}",
            "mediaLink": f"{base}/download/storage/v1/{path}?generation={self.generation}&alt=media",
            "name": self.name,
            "bucket": self.bucket,
            "generation": str(self.generation),
            "metageneration": str(self.metageneration),
            "contentType": self.content_type,
            "storageClass": "STANDARD",
            "size": str(len(self.data)),
            "crc32c": self.crc32c,
            "etag": self.json_etag,
            "timeCreated": timestamp(self.created),
            "updated": timestamp(self.updated),
        }
        return shown | self._optional()

    def xml_headers(self) -> dict[str, str]:
        hashes = [f"crc32c={self.crc32c}"] if len(self.data) <= SUMMED else []
        hashes += [] if self.composite else [f"md5={self.md5}"]
        return {
            "ETag": self.xml_etag,
            "x-goog-generation": str(self.generation),
            "x-goog-metageneration": str(self.metageneration),
            "x-goog-stored-content-length": str(len(self.data)),
            **({"X-Goog-Hash": ",".join(hashes)} if hashes else {}),
        }

    def _optional(self) -> dict[str, object]:
        md5 = {} if self.composite else {"md5Hash": self.md5}
        return {**md5, **({"metadata": dict(self.metadata)} if self.metadata else {})}


def _sum_of(data: bytes) -> str:
    return base64.b64encode(crc32c(data).to_bytes(4, "big")).decode()


def timestamp(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
