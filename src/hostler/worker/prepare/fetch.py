"""Downloads from a URL into a folder: a file, an unpacked archive, or all files under a prefix.

What is fetched is complete or an error: a shorter answer than announced is refused.
"""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hostler.errors import MissingError, PrepareError
from hostler.store.base import NotFound, Store
from hostler.worker.prepare.unpack import is_archive, unpack

CHUNK = 1 << 20
TIMEOUT = 60.0  # seconds without a byte
WEB = ("http", "https", "file")


def fetch(url: str, place: Path) -> None:
    """Fill the folder with what the URL holds."""
    name = leaf(url)
    if urlsplit(url).scheme not in WEB:
        _from_bucket(url, name, place)
    else:
        _from_web(url, place / name)
    if name and is_archive(name):
        archive = place.with_name(f"{place.name}.archive")
        (place / name).rename(archive)
        try:
            unpack(archive, place, what=url)
        finally:
            archive.unlink()


def found_at(url: str, place: Path) -> Path:
    """Where in the folder the thing itself is: the folder, unless it is a single file."""
    name = leaf(url)
    return place / name if name and not is_archive(name) else place


def leaf(url: str) -> str:
    """The file's name; '' for a bucket's prefix, which ends in '/'."""
    parts = urlsplit(url)
    name = os.path.basename(unquote(parts.path).replace("\0", ""))
    if not name and parts.scheme not in WEB:
        return ""
    return name if name not in ("", ".", "..") else "data"


def _from_web(url: str, path: Path) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "hostler"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, open(path, "wb") as file:
            announced = answer.headers.get("Content-Length")
            got = 0
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                got += len(chunk)
    except urllib.error.HTTPError as error:
        kind = MissingError if error.code in (404, 410) else PrepareError
        raise kind(f"cannot fetch {url}: {error.code} {error.reason}") from error
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise PrepareError(f"cannot fetch {url}: {error}") from error
    if announced is not None and announced.isdigit() and int(announced) != got:
        raise PrepareError(f"cannot fetch {url}: got {got} bytes of {announced}")


def _from_bucket(url: str, name: str, place: Path) -> None:
    from hostler.store import open_store  # the driver may be missing where no bucket is used

    store = open_store(url.rstrip("/").rpartition("/")[0] if name else url.rstrip("/"))
    if not name:
        _all_of(store, url, place)
        return
    try:
        store.download(name, place / name)
    except NotFound as error:
        raise MissingError(f"{url} does not exist", hint="end it with / if it is a folder") from error


def _all_of(store: Store, url: str, place: Path) -> None:
    count = 0
    for entry in store.list(""):
        parts = entry.key.split("/")
        if entry.key.endswith("/"):
            continue  # a marker some tools leave for an empty folder
        if ".." in parts or "" in parts:
            raise PrepareError(f"{url} holds a key that is not a path: {entry.key!r}")
        path = place.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        store.download(entry.key, path)
        count += 1
    if count == 0:
        raise MissingError(f"nothing was found under {url}")
