"""Data of a hub: addresses, and a token that stays with the hub."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import pytest

from hostler.errors import HostlerError, PrepareError, UsageError
from hostler.fleet.init_from import begin_from
from hostler.spec.files import entries
from hostler.spec.job import Job
from hostler.spec.project import default_project
from hostler.store.memory import MemoryStore
from hostler.worker.prepare import hub_files


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("hf://me/model", ("models", "me/model", "main", "")),
        ("hf://me/model@v1/a/b.bin", ("models", "me/model", "v1", "a/b.bin")),
        ("hf://datasets/squad", ("datasets", "squad", "main", "")),
        ("hf://datasets/squad/", ("datasets", "squad", "main", "")),
        ("hf://datasets/squad@v1/a/", ("datasets", "squad", "v1", "a/")),
        ("hf://models/me/model", ("models", "me/model", "main", "")),
        ("hf://me/model@refs/pr/1", ("models", "me/model", "refs/pr/1", "")),
        ("hf://me/model@refs/pr/1/a/b.bin", ("models", "me/model", "refs/pr/1", "a/b.bin")),
        (
            "hf://datasets/me/set@refs/convert/parquet/x/",
            ("datasets", "me/set", "refs/convert/parquet", "x/"),
        ),
        ("hf://me/model@my%2Fbranch/a", ("models", "me/model", "my/branch", "a")),
        ("hf://me/model/a@b", ("models", "me/model", "main", "a@b")),
        ("hf://datasets/me/set/train/", ("datasets", "me/set", "main", "train/")),
    ],
)
def test_address_of_the_hub_is_taken_apart(url: str, expected: tuple[str, ...]) -> None:
    assert hub_files.parse(url) == expected


BAD = ["hf://model", "hf://", "hf://me/model/../../x", "hf://../x/y", "hf://models/me", "hf://spaces/me/app"]
BAD += [
    "hf://datasets",
    "hf://datasets/",
    "hf://me/model@",
    "hf://me/model@refs/pr/x",
    "hf://me/model@a%2F..%2Fb",
]


@pytest.mark.parametrize("url", BAD)
def test_address_that_is_not_of_the_hub_is_refused(url: str) -> None:
    with pytest.raises(PrepareError, match="not an address of the hub"):
        hub_files.parse(url)


@pytest.mark.parametrize("url", [one for one in BAD if one != "hf://"])
def test_such_an_address_is_refused_where_data_and_the_start_are_read(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not an address of the hub"):
        entries.data_url(url)
    job, project = Job(name="x", command=("true",)), default_project(tmp_path)
    with pytest.raises(UsageError, match=r"--init-from: hf://.* is not an address of the hub"):
        begin_from(url, job, project, MemoryStore())


SEEN: list[tuple[str, str | None]] = []


class _Redirecting(BaseHTTPRequestHandler):
    to = ""

    def log_message(self, *given: object) -> None: ...

    def do_GET(self) -> None:
        SEEN.append((self.path, self.headers.get("Authorization")))
        following = {"/m/x/resolve/main/a": "/home", "/home": f"{type(self).to}/away"}.get(self.path)
        self.send_response(302 if following else 200)
        if following:
            self.send_header("Location", following)
        body = b"" if following else b"weights"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def places() -> Iterator[tuple[str, str]]:
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _Redirecting) for _ in range(2)]
    urls = [f"http://127.0.0.1:{server.server_port}" for server in servers]
    _Redirecting.to = urls[1]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield urls[0], urls[1]
    for server in servers:
        server.shutdown()
        server.server_close()


def test_token_stays_with_the_hub_when_it_sends_us_on(
    places: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", places[0])
    monkeypatch.setenv("HF_TOKEN", "t0ken")
    hub_files.fetch("hf://m/x/a", tmp_path, "a")
    assert (tmp_path / "a").read_bytes() == b"weights"
    assert SEEN == [("/m/x/resolve/main/a", "Bearer t0ken"), ("/home", "Bearer t0ken"), ("/away", None)]


Pages = dict[str, tuple[bytes, dict[str, str]]]  # path → body, headers


class _Answers(BaseHTTPRequestHandler):
    pages: ClassVar[Pages] = {}

    def log_message(self, *given: object) -> None: ...

    def do_GET(self) -> None:
        body, headers = type(self).pages[self.path]
        self.send_response(200)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    _Answers.pages = {}
    yield _Answers.pages
    server.shutdown()
    server.server_close()


TREE = "/api/models/m/x/tree/main?recursive=true"


def _listing(*names: str) -> bytes:
    return json.dumps([{"type": "file", "path": name} for name in names]).encode()


@pytest.mark.parametrize(
    "page",
    [
        b"<html>please log in</html>",
        b"{}",
        b"[1]",
        b"null",
        b'[{"type":"file"}]',
        b"[" * 100_000,
        b"\xff\x00",
    ],
)
def test_answer_that_is_no_list_is_one_line(hub: Pages, tmp_path: Path, page: bytes) -> None:
    hub[TREE] = page, {}
    with pytest.raises(HostlerError) as refused:
        hub_files.fetch("hf://m/x", tmp_path, "")
    assert "hf://m/x" in refused.value.message and "\n" not in refused.value.message


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "x" * 300, "a\0b", "a/b"])
def test_name_that_no_folder_takes_is_refused(hub: Pages, tmp_path: Path, name: str) -> None:
    hub[TREE] = _listing("a", name), {}
    for path in ("/m/x/resolve/main/a", f"/m/x/resolve/main/{quote(name)}"):
        hub[path] = b"data", {}
    place = tmp_path / "deep" / "place"
    place.mkdir(parents=True)
    with pytest.raises(HostlerError):
        hub_files.fetch("hf://m/x", place, "")
    assert {path.name for path in tmp_path.rglob("*")} <= {"deep", "place", "a"}


def test_answer_that_breaks_off_is_one_line(hub: Pages, tmp_path: Path) -> None:
    hub["/m/x/resolve/main/a"] = b"half", {"Content-Length": "8"}
    hub[TREE] = b"[", {"Content-Length": "8"}
    for name in ("a", ""):
        with pytest.raises(PrepareError, match="cannot fetch"):
            hub_files.fetch(f"hf://m/x/{name}", tmp_path, name)


def test_list_that_leads_to_itself_ends(hub: Pages, tmp_path: Path) -> None:
    hub[TREE] = _listing("a"), {"Link": f'<{os.environ["HF_ENDPOINT"]}{TREE}>; rel="next"'}
    hub["/m/x/resolve/main/a"] = b"data", {}
    hub_files.fetch("hf://m/x", tmp_path, "")
    assert (tmp_path / "a").read_bytes() == b"data"
