"""HTTP that all emulators share."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, RemoteDisconnected

import pytest

from hostler.emulators.serving import Handler, LoopbackServer


class Echo(Handler):
    def answer(self) -> None:
        path, query, headers = self.head()
        body = self.rfile.read(self.length())
        if path == "/bug":
            raise ZeroDivisionError("a fault of the emulator")
        if path == "/gone":
            raise BrokenPipeError("a client that went away")
        if path == "/reset":
            return self.reset()
        said = f"{self.command} {path} {query} {headers['x-a']}".encode() + body
        return self.send(204 if path == "/none" else 200, said, {"X-B": "b"})


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(Echo) as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def ask(server: LoopbackServer, method: str, path: str, body: bytes = b"") -> tuple[int, bytes, str | None]:
    connection = HTTPConnection(server.host, timeout=30)
    connection.request(method, path, body, {"X-A": "a"})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers.get("Content-Length")


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "PATCH", "DELETE"])
def test_request_is_read_and_its_answer_written(server: LoopbackServer, method: str) -> None:
    said = f"{method} /a%20b {{'q': '', 'r': '1'}} a".encode() + b"body"
    assert ask(server, method, "/a%20b?q=&r=1", b"body") == (200, said, str(len(said)))


def test_answer_without_body_has_none(server: LoopbackServer) -> None:
    assert ask(server, "GET", "/none")[2] is None
    status, body, length = ask(server, "HEAD", "/x")
    assert (status, body) == (200, b"") and length


def test_reset_is_not_an_orderly_end(server: LoopbackServer) -> None:
    with pytest.raises(ConnectionResetError) as met:
        ask(server, "GET", "/reset")
    assert not isinstance(met.value, RemoteDisconnected)


def test_only_a_fault_of_the_emulator_is_printed(
    server: LoopbackServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in ("/gone", "/bug"):
        with socket.create_connection(("127.0.0.1", server.server_port)) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nX-A: a\r\n\r\n".encode())
            assert client.recv(1) == b""
    said = capsys.readouterr().err
    assert "a fault of the emulator" in said and "went away" not in said
