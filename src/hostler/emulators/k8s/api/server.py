"""HTTP of the stand-in: who asks, for what, and the answer or the stream of it."""

from __future__ import annotations

import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

from hostler.emulators.k8s.api import discovery
from hostler.emulators.k8s.api.api import Api
from hostler.emulators.k8s.api.message import Answer, Call, Stream, as_json, refused
from hostler.emulators.k8s.api.refusal import Refusal, no_such_path
from hostler.emulators.k8s.api.routes import route
from hostler.emulators.k8s.rules.access import Access


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    api: Api
    access: Access

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str]] = []  # method and path with query, of everything that was asked

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def secure(self, context: ssl.SSLContext) -> None:
        """The handshake is each connection's own, so that a slow client keeps nobody waiting."""
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news; anything else is a fault of the stand-in, and printed."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError, ssl.SSLError)):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: Server

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.command, self.path))
        try:
            reply = self._reply(body)
        except Refusal as refusal:
            reply = refused(refusal)
        if isinstance(reply, Stream):
            self._stream(reply)
        else:
            self._send(reply)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any

    def log_message(self, format: str, *args: object) -> None:
        return

    def _reply(self, body: bytes) -> Answer | Stream:
        path, _, text = self.path.partition("?")
        if path in ("/healthz", "/livez", "/readyz"):
            return Answer(200, b"ok", {"Content-Type": "text/plain"})
        headers = {name.lower(): value for name, value in self.headers.items()}
        user = self.server.access.user(headers)
        query = dict(parse_qsl(text, keep_blank_values=True))
        at = route(self.command, path, query)
        if at is None:
            found = discovery.document(path)
            if found is None:
                raise no_such_path()
            return as_json(found)
        call = Call(at.verb, at.resource, at.namespace, at.name, at.sub, query, headers, body, user)
        return self.server.api.answer(call)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _stream(self, stream: Stream) -> None:
        self.send_response(200)
        self.send_header("Content-Type", stream.kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for piece in stream.pieces:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
