"""A bucket's objects by name, and one page of its listing. The caller holds the storage's lock."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

from hostler.emulators.gcs.message import bad_request
from hostler.emulators.gcs.objects import Object, timestamp

MOST = 1000
_BEHIND_ALL = "\U0010ffff"


@dataclass(frozen=True)
class Query:
    """Query of a listing; `start` is included, `after` and `end` are not."""

    prefix: str = ""
    delimiter: str = ""
    start: str = ""
    after: str = ""
    end: str = ""
    token: str = ""
    most: int = MOST


@dataclass
class Page:
    objects: list[Object] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    token: str = ""

    def __len__(self) -> int:
        return len(self.objects) + len(self.prefixes)


class Bucket:
    def __init__(self, name: str, created: float) -> None:
        self.name = name
        self.created = created
        self.location = "US"
        self._objects: dict[str, Object] = {}
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, name: str) -> Object | None:
        return self._objects.get(name)

    def put(self, found: Object) -> None:
        if found.name not in self._objects:
            insort(self._names, found.name)
        self._objects[found.name] = found

    def remove(self, name: str) -> None:
        if self._objects.pop(name, None):
            del self._names[bisect_left(self._names, name)]

    def page(self, query: Query) -> Page:
        page, at, last = Page(), self._begin(query), ""
        while at < len(self._names):
            name = self._names[at]
            if not name.startswith(query.prefix) or (query.end and name >= query.end):
                break
            if len(page) >= query.most:
                page.token = base64.urlsafe_b64encode(last.encode()).decode()
                break
            fold = name.find(query.delimiter, len(query.prefix)) if query.delimiter else -1
            if fold < 0:
                page.objects.append(self._objects[name])
                last, at = name, at + 1
            else:
                page.prefixes.append(name[: fold + len(query.delimiter)])
                last = page.prefixes[-1] + _BEHIND_ALL
                at = bisect_right(self._names, last)
        return page

    def resource(self, base: str) -> dict[str, object]:
        """The bucket as the JSON API shows it."""
        return {
            "kind": "storage#bucket",
            "id": self.name,
            "name": self.name,
            "selfLink": f"{base}/storage/v1/b/{self.name}",
            "projectNumber": "1",
            "metageneration": "1",
            "location": self.location,
            "locationType": "region" if "-" in self.location else "multi-region",
            "storageClass": "STANDARD",
            "etag": "CAE=",
            "timeCreated": timestamp(self.created),
            "updated": timestamp(self.created),
        }

    def _begin(self, query: Query) -> int:
        at = bisect_left(self._names, max(query.prefix, query.start))
        for after in (query.after, _decoded(query.token)):
            at = max(at, bisect_right(self._names, after))
        return at


def _decoded(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token).decode()
    except (binascii.Error, ValueError):
        raise bad_request("the page token is not one of this bucket's") from None
