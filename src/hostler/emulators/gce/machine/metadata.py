"""The metadata server of a machine, as its processes find it by GCE_METADATA_HOST.

A read with `wait_for_change` is answered when what it reads is no longer what it was, when its time is over,
or when the machine ends. Without `Metadata-Flavor: Google` nothing is answered.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from hostler.emulators.gce.machine.board import Board, etag
from hostler.emulators.gcs.message import Answer, json_answer
from hostler.emulators.gcs.tokens import LIFE
from hostler.emulators.serving import Handler, LoopbackServer

ROOT = "/computeMetadata/v1"
FLAVOR = {"Metadata-Flavor": "Google"}
_GUEST = re.compile(r"/computeMetadata/v1/instance/guest-attributes/([^/]+)/([^/]+)")
_TOKEN = re.compile(r"/computeMetadata/v1/instance/service-accounts/[^/]+/token")
_NONE = object()

View = Callable[[], dict[str, Any]]


class MetadataServer(LoopbackServer):
    def __init__(self, view: View, board: Board, token: Callable[[], str]) -> None:
        super().__init__(_Handler)
        self.view, self.board, self.token = view, board, token
        self._closed = False
        threading.Thread(target=self.serve_forever, args=(0.05,), name="gce-metadata", daemon=True).start()

    def close(self) -> None:
        """Returns at once: the caller may hold the lock that answers under way need."""
        self._closed = True
        self.board.tell()
        threading.Thread(target=self._end, name="gce-metadata-end", daemon=True).start()

    def _end(self) -> None:
        self.shutdown()
        self.server_close()

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        if path == "/":
            return _text("computeMetadata/\n")
        if _TOKEN.fullmatch(path):
            given = {"access_token": self.token(), "expires_in": int(LIFE), "token_type": "Bearer"}
            return _json(given)
        found = self._read(path, query)
        return Answer(404, b"", FLAVOR) if found is _NONE else _shown(found, path, query)

    def put(self, path: str, value: str) -> Answer:
        match = _GUEST.fullmatch(path)
        if not match or not _enabled(self.view()):
            return Answer(403 if match else 404, b"", FLAVOR)
        with self.board.changed:
            self.board.guest_attributes[f"{match[1]}/{match[2]}"] = value
            self.board.heard(f"{match[1]}/{match[2]}", value)
            self.board.changed.notify_all()
        return Answer(200, b"", FLAVOR)

    def _read(self, path: str, query: Mapping[str, str]) -> object:
        with self.board.changed:
            now = _look(self.view(), path)
            if query.get("wait_for_change", "").lower() != "true":
                return now
            known = query.get("last_etag") or etag(_plain(now))
            until = time.monotonic() + float(query.get("timeout_sec") or 1e6)
            while etag(_plain(now)) == known and not self._closed and time.monotonic() < until:
                self.board.changed.wait(min(until - time.monotonic(), 3600))
                now = _look(self.view(), path)
            return now


def _enabled(tree: Mapping[str, Any]) -> bool:
    found = {name.lower(): value for name, value in tree["instance"]["attributes"].items()}
    return str(found.get("enable-guest-attributes", "")).upper() == "TRUE"


def _plain(found: object) -> object:
    return None if found is _NONE else found


def _look(tree: Mapping[str, Any], path: str) -> object:
    """The value at a path; names in it are spelt with dashes, a user's attributes as he spelt them."""
    found: object = tree
    for part in [unquote(part) for part in path.removeprefix(ROOT).split("/") if part]:
        if isinstance(found, list):
            found = found[int(part)] if part.isdigit() and int(part) < len(found) else _NONE
        elif isinstance(found, dict):
            found = found.get(part, {_dashed(name): value for name, value in found.items()}.get(part, _NONE))
        else:
            return _NONE
    return found


def _dashed(name: str) -> str:
    return name if "-" in name or "@" in name else re.sub("[A-Z]", lambda found: "-" + found[0].lower(), name)


def _shown(found: object, path: str, query: Mapping[str, str]) -> Answer:
    mark = {"ETag": etag(found)}
    if query.get("recursive", "").lower() == "true" or query.get("alt") == "json":
        return _json(found, mark)
    if isinstance(found, dict):
        within = path.rstrip("/").endswith("/attributes")
        names = [
            (name if within else _dashed(name)) + ("/" if isinstance(value, dict | list) else "")
            for name, value in found.items()
        ]
        return _text("".join(f"{name}\n" for name in names), mark)
    if isinstance(found, list):
        ends = ["/" if isinstance(one, dict) else "" for one in found]
        return _text("".join(f"{number}{end}\n" for number, end in enumerate(ends)), mark)
    return _text(str(found), mark)


def _text(text: str, more: Mapping[str, str] | None = None) -> Answer:
    return Answer(200, text.encode(), {"Content-Type": "application/text", **FLAVOR, **(more or {})})


def _json(content: object, more: Mapping[str, str] | None = None) -> Answer:
    answer = json_answer({})
    return Answer(200, json.dumps(content).encode(), {**answer.headers, **FLAVOR, **(more or {})})


class _Handler(Handler):
    server: MetadataServer

    def answer(self) -> None:
        path, query, headers = self.head()
        value = self.rfile.read(self.length()).decode(errors="replace")
        if path != "/" and headers.get("metadata-flavor") != "Google":
            found = Answer(403, b"Missing Metadata-Flavor:Google header.", {})
        elif self.command == "PUT":
            found = self.server.put(unquote(self.path), value)
        elif self.command == "GET":
            found = self.server.answer(path, query)
        else:
            found = Answer(405)
        self.send(found.status, found.body, found.headers)

    def version_string(self) -> str:
        return "Metadata Server for VM"
