"""Whether a tool's server answers, asked of real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hostler.errors import HostUnreachable
from hostler.trackers import reach as module
from hostler.trackers.reach import reach


@pytest.fixture
def closed() -> int:
    """A port at which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def mute() -> Iterator[int]:
    """One that takes connections and never says a word."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        yield int(one.getsockname()[1])


class Refusing(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(self.server.says)  # type: ignore[attr-defined]
        self.send_header("Location", "http://127.0.0.1:9/login")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.parametrize("says", [200, 302, 401, 404, 405, 503])
def test_any_answer_will_do_and_it_is_not_followed(says: int) -> None:
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    server.says = says  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    reach("mlflow", f"http://127.0.0.1:{server.server_port}/prefix", "start it")
    server.shutdown()
    server.server_close()


def test_missing_server_is_one_line_with_advice_without_a_password(closed: int) -> None:
    with pytest.raises(HostUnreachable) as caught:
        reach("mlflow", f"http://me:hush@127.0.0.1:{closed}/x", "start it")
    assert caught.value.message == f"mlflow: http://127.0.0.1:{closed}/ does not answer (Connection refused)"
    assert caught.value.hint == "start it"


def test_one_that_never_says_a_word_is_given_up(mute: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WITHIN", 0.2)
    with pytest.raises(HostUnreachable, match="no answer within"):
        reach("wandb", f"http://127.0.0.1:{mute}", "")


@pytest.mark.parametrize(
    "url", ["sqlite:///x.db", "databricks", "/a/folder", "", "postgresql://h/x", "http:"]
)
def test_of_what_is_no_web_address_nothing_is_asked(url: str) -> None:
    reach("mlflow", url, "")
