"""HTTP of every emulator: a server on a loopback port, requests read and answers written."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NoReturn
from urllib.parse import parse_qsl


class LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[Handler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is not news; anything else is a fault of the emulator, and printed."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def answer(self) -> None:
        """Read the request and write its answer; each emulator has its own."""
        raise NotImplementedError

    def _answer(self) -> None:
        self.answer()

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _answer

    def log_message(self, format: str, *args: object) -> None:
        return

    def head(self) -> tuple[str, dict[str, str], dict[str, str]]:
        """The path as it was sent, the query, and the headers with names in lower case."""
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        return path, dict(parse_qsl(query, keep_blank_values=True)), headers

    def length(self) -> int:
        return int(self.headers.get("Content-Length") or 0)

    def send(self, status: int, body: bytes, headers: Mapping[str, str], cut: int | None = None) -> None:
        """`cut`: after so many bytes of the body nothing more comes."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut])

    def reset(self) -> NoReturn:
        """Not an orderly end: the peer gets a reset, and this connection's thread ends."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.wfile.close()
        self.connection.close()
        raise ConnectionResetError("on purpose")
