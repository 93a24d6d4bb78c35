"""Raw bytes of a store, read without hostler: a folder's files, or a bucket's objects by plain HTTP.

Only the standard library is used, and nothing of hostler: whoever judges a store must not see it through
the code that wrote it. Keys are those that docs/storage.md lists.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Protocol

TRIES = 40  # of a request, where a server is busy, cut off or loses answers on purpose
TEMPORARY = ".tmp-"  # begins the name of a file that a writer of a folder has not finished


class RawStore(Protocol):
    def keys(self, prefix: str = "") -> list[str]: ...

    def get(self, key: str) -> bytes | None:
        """Bytes under a key; None if it is gone."""
        ...


@dataclass(frozen=True)
class Folder:
    root: Path

    def keys(self, prefix: str = "") -> list[str]:
        return sorted(key for key in self.files() if key.startswith(prefix) and not is_temporary(key))

    def files(self) -> Iterator[str]:
        """Paths of all files, the unfinished ones too."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                yield Path(folder, name).relative_to(self.root).as_posix()

    def get(self, key: str) -> bytes | None:
        try:
            return (self.root / key).read_bytes()
        except FileNotFoundError:
            return None


@dataclass(frozen=True)
class Bucket:
    """Objects below a prefix of a bucket; `page` asks for names, `fetch` for bytes."""

    prefix: str
    page: Callable[[str, str], tuple[list[str], str]]  # (prefix, where the last page ended) → names, next
    fetch: Callable[[str], bytes | None]

    def keys(self, prefix: str = "") -> list[str]:
        found, after = list[str](), ""
        while True:
            names, after = self.page(self.prefix + prefix, after)
            found += [name.removeprefix(self.prefix) for name in names]
            if not after:
                return sorted(found)

    def get(self, key: str) -> bytes | None:
        return self.fetch(self.prefix + key)


def open_raw(url: str, environ: Mapping[str, str]) -> RawStore:
    """The store of a URL; a bucket's server is the one that the drivers find by these variables."""
    scheme, _, rest = url.partition("://")
    if not rest:
        return Folder(Path(url))
    bucket, _, prefix = rest.partition("/")
    prefix = f"{prefix.strip('/')}/"
    make = {"s3": _s3, "gs": _google, "az": _azure}[scheme]
    return make(bucket, prefix, environ)


def dump(store: RawStore, target: Path) -> None:
    """Write every object as a file below `target`; those that go meanwhile are left out."""
    for key in store.keys(""):
        data = store.get(key)
        if data is not None:
            path = target / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def is_temporary(key: str) -> bool:
    return key.rpartition("/")[2].startswith(TEMPORARY)


def ask(make: Callable[[], urllib.request.Request]) -> bytes | None:
    """Body of an answer, None of a 404; asked again as long as the server is in trouble."""
    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(make(), timeout=20) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            if error.code not in (408, 429, 500, 502, 503, 504) or not left:
                raise
        except (OSError, http.client.HTTPException):
            if not left:
                raise
        time.sleep(0.2)
    return None


def _s3(bucket: str, prefix: str, environ: Mapping[str, str]) -> Bucket:
    """A server that asks for no signature."""
    base = f"{environ['AWS_ENDPOINT_URL']}/{bucket}"

    def page(prefix: str, after: str) -> tuple[list[str], str]:
        query = {"list-type": "2", "prefix": prefix, **({"continuation-token": after} if after else {})}
        return _names(ask(_plain(f"{base}?{urllib.parse.urlencode(query)}")), "Key", "NextContinuationToken")

    return Bucket(prefix, page, lambda key: ask(_plain(f"{base}/{urllib.parse.quote(key)}")))


def _google(bucket: str, prefix: str, environ: Mapping[str, str]) -> Bucket:
    base = f"{environ['STORAGE_EMULATOR_HOST']}/storage/v1/b/{bucket}/o"
    headers = _by_token(environ.get("GCE_METADATA_HOST", ""))

    def asked(words: str) -> bytes | None:
        return ask(lambda: urllib.request.Request(f"{base}{words}", headers=headers()))

    def page(prefix: str, after: str) -> tuple[list[str], str]:
        query = {"prefix": prefix, **({"pageToken": after} if after else {})}
        found = json.loads(asked(f"?{urllib.parse.urlencode(query)}") or b"{}")
        return [item["name"] for item in found.get("items", [])], found.get("nextPageToken", "")

    def fetch(key: str) -> bytes | None:
        return asked(f"/{urllib.parse.quote(key, safe='')}?alt=media")

    return Bucket(prefix, page, fetch)


def _by_token(metadata: str) -> Callable[[], dict[str, str]]:
    """Headers with a token of the metadata server at this address, a new one each minute."""
    path = "computeMetadata/v1/instance/service-accounts/default/token"
    known: dict[int, dict[str, str]] = {}

    def headers() -> dict[str, str]:
        minute = int(time.monotonic() // 60)
        if metadata and minute not in known:
            request = urllib.request.Request(
                f"http://{metadata}/{path}", headers={"Metadata-Flavor": "Google"}
            )
            token = json.loads(ask(lambda: request) or b"{}")["access_token"]
            known[minute] = {"Authorization": f"Bearer {token}"}
        return known.get(minute, {})

    return headers


def _azure(bucket: str, prefix: str, environ: Mapping[str, str]) -> Bucket:
    account, key = environ["AZURE_STORAGE_ACCOUNT_NAME"], environ["AZURE_STORAGE_ACCOUNT_KEY"]
    endpoint = environ["AZURE_STORAGE_ENDPOINT"]

    def signed(path: str, query: Mapping[str, str]) -> Callable[[], urllib.request.Request]:
        def make() -> urllib.request.Request:
            headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
            lines = [f"{name}:{value}" for name, value in headers.items()]
            lines += [f"/{account}/{account}{path}"]
            lines += [f"{name}:{query[name]}" for name in sorted(query)]
            text = f"GET{chr(10) * 12}" + "\n".join(lines)
            digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
            headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(digest).decode()}"
            words = f"?{urllib.parse.urlencode(query)}" if query else ""
            return urllib.request.Request(f"{endpoint}{path}{words}", headers=headers)

        return make

    def page(prefix: str, after: str) -> tuple[list[str], str]:
        query = {"restype": "container", "comp": "list", "prefix": prefix}
        query |= {"marker": after} if after else {}
        return _names(ask(signed(f"/{bucket}", query)), "Name", "NextMarker", of="Blob")

    return Bucket(prefix, page, lambda name: ask(signed(f"/{bucket}/{urllib.parse.quote(name)}", {})))


def _plain(url: str) -> Callable[[], urllib.request.Request]:
    return lambda: urllib.request.Request(url)


def _names(body: bytes | None, name: str, after: str, of: str = "") -> tuple[list[str], str]:
    """Names on a page of XML, whatever its name space, and where the next page begins."""
    root = ET.fromstring(body or b"<none/>")
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
    nodes = root.iter(name) if not of else (node.find(name) for node in root.iter(of))
    found = [node.text or "" for node in nodes if node is not None]
    return found, root.findtext(after) or ""
