"""Requests of a first program: asked again while a server may yet answer, given up when it says no."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from hostler.backends import fetch as fetching
from hostler.backends.fetch import fetch, fetch_object
from hostler.errors import MachineError

BROKEN = 0  # an answer that is shorter than it says


class Server(HTTPServer):
    answers: list[int]

    @property
    def request_to(self) -> Request:
        return Request(f"http://127.0.0.1:{self.server_port}/x")


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        status = self.server.answers.pop(0)
        self.send_response(status or 200)
        self.send_header("Content-Length", "4" if status else "1000")
        self.end_headers()
        self.wfile.write(b"body")

    def log_message(self, *given: object) -> None: ...


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(fetching.time, "sleep", found.append)
    return found


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


@pytest.mark.parametrize("status", [BROKEN, 408, 429, 500, 503])
def test_server_that_may_yet_answer_is_asked_again(server: Server, slept: list[float], status: int) -> None:
    server.answers = [status, status, 200]
    assert fetch(server.request_to) == b"body" and slept == [0.5, 1.0]


def test_refusal_is_not_asked_again(server: Server, slept: list[float]) -> None:
    server.answers = [403]
    with pytest.raises(HTTPError, match="403"):
        fetch(server.request_to)
    assert slept == [] and server.answers == []


def test_refused_object_is_the_machines_fault(server: Server, slept: list[float]) -> None:
    server.answers = [404]
    with pytest.raises(MachineError, match=r"k cannot be read from gs://b: .*404.*opens the bucket"):
        fetch_object(lambda: server.request_to, "gs://b", "k")


@pytest.mark.parametrize("status", [BROKEN, 429, 503])
def test_silent_store_is_worth_another_try_later(server: Server, slept: list[float], status: int) -> None:
    server.answers = [status] * fetching.TRIES
    with pytest.raises(OSError, match="gs://b cannot be reached"):
        fetch_object(lambda: server.request_to, "gs://b", "k")
    assert sum(slept) == 30.0 and server.answers == []


def test_refused_token_counts_as_refused_object(slept: list[float]) -> None:
    def no_token() -> Request:
        raise HTTPError("http://x", 404, "no account", None, None)  # type: ignore[arg-type]

    with pytest.raises(MachineError, match="404"):
        fetch_object(no_token, "gs://b", "k")


def test_no_proxy_is_asked_if_not_wanted(
    server: Server, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    server.answers = [200]
    assert fetch(server.request_to, proxies=False) == b"body"
    with pytest.raises(OSError):
        fetch(server.request_to)
