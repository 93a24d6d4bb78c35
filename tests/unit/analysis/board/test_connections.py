"""Connections that waste the dashboard's time, over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from hostler.analysis.board import serve

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers a kilobyte, or a stream of megabytes for /much."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(400 if scope["path"] == "/much" else 0):
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
    await send({"type": "http.response.body", "body": b"x" * 1000})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(serve, "REQUEST", 0.3)
    monkeypatch.setattr(serve, "STALLED", 0.3)
    monkeypatch.setattr(serve, "CONNECTIONS", 4)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=serve.BoundedConnection, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(30)


def dial(port: int, *parts: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=20)
    for part in parts:
        made.sendall(part)
    return made


def rest(made: socket.socket) -> bytes:
    """All that comes until the server closes; TimeoutError if it does not."""
    found = b""
    try:
        while data := made.recv(1 << 16):
            found += data
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET / HT", HEAD[:-2], b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab"],
    ids=["nothing", "line", "headers", "body"],
)
def test_request_that_does_not_arrive_whole_is_closed(port: int, begun: bytes) -> None:
    with dial(port, begun) as made:
        answered = rest(made)
    assert answered == b"" or begun.startswith(b"POST")


def test_dribbled_request_is_closed(port: int) -> None:
    with dial(port) as made:
        made.settimeout(0.05)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for _ in range(400):  # 20 seconds, were it not closed
                made.sendall(b"G")
                try:
                    if made.recv(1) == b"":
                        raise ConnectionResetError
                except TimeoutError:
                    continue


def test_second_request_of_a_connection_has_its_own_time(port: int) -> None:
    with dial(port, HEAD) as made:
        assert made.recv(4).startswith(b"HTTP")
        made.sendall(HEAD[:10])
        assert b"x" * 1000 in rest(made)


def test_answer_that_nobody_reads_is_dropped(port: int) -> None:
    with dial(port, HEAD.replace(b"/ ", b"/much ", 1)) as made:
        with dial(port, HEAD) as other:  # the server goes on meanwhile
            assert b"200" in rest(other)
        threading.Event().wait(0.8)
        assert len(rest(made)) < 400 * 100_000


def test_oldest_idle_connection_makes_room(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "REQUEST", 60.0)  # what closes it is not its time
    idle = [dial(port) for _ in range(4)]
    with dial(port, HEAD) as made:
        assert b"200" in made.recv(100)
    assert rest(idle[0]) == b""
    for one in idle[1:]:
        one.sendall(HEAD)
        assert b"200" in one.recv(100)
    for one in idle:
        one.close()
