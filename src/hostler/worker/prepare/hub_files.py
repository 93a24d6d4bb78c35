"""Files of a hub for a run's data: `hf://OWNER/NAME/FILE`, `hf://datasets/OWNER/NAME@REVISION/FOLDER/`, or a
whole repository. The standard library alone: a machine needs no client of the hub.

The token is sent to the hub itself, never to where the hub sends us on to.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from hostler import env
from hostler.errors import MissingError, PrepareError
from hostler.spec.files import hub_address

CHUNK = 1 << 20
TIMEOUT = 60.0  # seconds without a byte


def parse(url: str) -> hub_address.HubPath:
    try:
        return hub_address.parse(url)
    except ValueError as error:  # a job of before it was checked at submission
        raise PrepareError(str(error), hint=hub_address.HINT) from None


def leaf(url: str) -> str:
    """The file's name; '' for a repository or a folder."""
    return os.path.basename(parse(url).path)


def fetch(url: str, place: Path, name: str) -> None:
    """Fill the folder with the file, or with all files below the folder. Complete, or an error."""
    meant, (endpoint, token) = parse(url), env.hub()
    if name:
        _download(meant.at(endpoint, meant.path), place / name, token, url)
        return
    names = _listed(meant, endpoint, token, url)
    if not names:
        raise MissingError(f"nothing was found under {url}")
    for one in names:
        below = one.removeprefix(meant.path)
        if not one.startswith(meant.path) or ".." in below.split("/") or below.startswith("/"):
            raise PrepareError(f"{url} holds a name that is not a path: {one!r:.200}")
        try:
            (place / below).parent.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise PrepareError(f"{url} holds a name that no folder here takes: {one!r:.200}: {why}") from None
        _download(meant.at(endpoint, one), place / below, token, url)


def _listed(meant: hub_address.HubPath, endpoint: str, token: str | None, url: str) -> list[str]:
    """Files of a repository, or below one of its folders, over all pages of the answer."""
    below = f"/{quote(meant.path.rstrip('/'))}" if meant.path else ""
    tree = f"{endpoint}/api/{meant.kind}/{meant.repo}/tree/{quote(meant.revision, safe='')}{below}"
    page: str | None = f"{tree}?recursive=true"
    names: list[str] = []
    asked: set[str] = set()
    while page and page not in asked:
        asked.add(page)
        with _opened(page, token, url) as answer:
            names += _names(answer.read(), url)
            following = re.search(r'<([^>]+)>;\s*rel="next"', answer.headers.get("Link") or "")
        page = following[1] if following and _host(following[1]) == _host(endpoint) else None
    return names


def _names(data: bytes, url: str) -> list[str]:
    """Files of a page of the list."""
    try:
        return [str(row["path"]) for row in json.loads(data) if row.get("type") == "file"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        hint = "a proxy may have answered in its place; HF_ENDPOINT names another hub"
        raise PrepareError(f"the hub's list of {url} is not one: {data[:40]!r}", hint=hint) from None


def _download(address: str, path: Path, token: str | None, url: str) -> None:
    got = 0
    with _opened(address, token, url) as answer, open(path, "wb") as file:
        announced = answer.headers.get("Content-Length")
        while chunk := answer.read(CHUNK):
            file.write(chunk)
            got += len(chunk)
    if announced is not None and announced.isdigit() and int(announced) != got:
        raise PrepareError(f"cannot fetch {url}: got {got} bytes of {announced}")


@contextmanager
def _opened(address: str, token: str | None, url: str) -> Iterator[Any]:
    """The hub's answer; also what breaks off while it is read is said of the address."""
    request = urllib.request.Request(address, headers={"User-Agent": "hostler"})
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.build_opener(_KeepTokenAtHome).open(request, timeout=TIMEOUT) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            hint = "is the name right? of a private or gated one, HF_TOKEN has to be set where the run is"
            raise PrepareError(f"the hub refuses {url}: {error.code}", hint=hint) from None
        kind = MissingError if error.code in (404, 410) else PrepareError
        raise kind(f"cannot fetch {url}: {error.code} {error.reason}") from None
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise PrepareError(f"cannot fetch {url}: {error}") from None


class _KeepTokenAtHome(urllib.request.HTTPRedirectHandler):
    """Follows the hub to where its large files are; the token goes along only within the hub."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> Any:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        token = req.get_header("Authorization")
        if following is not None and token and _host(req.full_url) == _host(newurl):
            following.add_unredirected_header("Authorization", token)
        return following


def _host(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc
