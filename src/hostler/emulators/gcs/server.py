"""HTTP of the emulator: requests in, answers out, faults in between.

The beginning of a body is read before a fault is chosen, since uploads of the JSON API tell their
object's name there.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

from hostler.emulators.gcs.batch import answer_batch
from hostler.emulators.gcs.counts import Counts
from hostler.emulators.gcs.faults import Fault, Faults
from hostler.emulators.gcs.json_api import answer_json
from hostler.emulators.gcs.message import Answer, Refusal, Request
from hostler.emulators.gcs.route import Api, Route, route
from hostler.emulators.gcs.storage import Storage
from hostler.emulators.gcs.tokens import Tokens, unauthenticated
from hostler.emulators.gcs.uploads import answer_upload, name_in
from hostler.emulators.gcs.xml_api import answer_xml

_PEEK = 65536


@dataclass
class Service:
    """State shared by all connections."""

    storage: Storage
    tokens: Tokens
    strict: bool  # every request must carry a good token
    faults: Faults = field(default_factory=Faults)
    counts: Counts = field(default_factory=Counts)

    def answer(self, request: Request, at: Route) -> Answer:
        try:
            if at.api is Api.METADATA:
                return self.tokens.answer(request)
            if self.strict and not self.tokens.good(request.headers.get("authorization", "")):
                raise unauthenticated()
            return self._by_api(request, at)
        except Refusal as refusal:
            return refused(refusal, at)

    def _by_api(self, request: Request, at: Route) -> Answer:
        if at.api is Api.JSON:
            return answer_json(self.storage, request, at)
        if at.api is Api.UPLOAD:
            return answer_upload(self.storage, request, at)
        if at.api is Api.BATCH:
            return answer_batch(self.storage, request)
        return answer_xml(self.storage, request, at)


def refused(refusal: Refusal, at: Route) -> Answer:
    if refusal.status == 304:
        return Answer(304)
    return refusal.as_xml() if at.api is Api.XML else refusal.as_json()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, service: Service) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.service = service

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that went away; its thread ends."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: Server

    def handle_any(self) -> None:
        service = self.server.service
        head = self._peek()
        at = route(head.method, head.path, head.query, head.headers)
        if at.api is Api.UPLOAD and not at.key:
            at = replace(at, key=name_in(head))
        service.counts.add(at)
        fault = service.faults.choose(at)
        if fault is not None and fault.cut:
            self._discard(self._length() // 2 - len(head.body))
            return self._reset()
        request = replace(head, body=head.body + self.rfile.read(self._length() - len(head.body)))
        return self._respond(request, at, fault or Fault(done=True))

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any

    def log_message(self, format: str, *args: object) -> None:
        return

    def _respond(self, request: Request, at: Route, fault: Fault) -> None:
        answer = self.server.service.answer(request, at) if fault.done else Answer()
        if fault.delay:
            self.wfile.flush()
            time.sleep(fault.delay)
        if fault.reset:
            self._reset()
            return
        if fault.status:
            answer = fault.mark(refused(fault.answer(), at))
        self._send(answer, len(answer.body) // 2 if fault.halved else len(answer.body))
        self.close_connection = self.close_connection or fault.halved

    def _send(self, answer: Answer, count: int) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[:count])

    def _peek(self) -> Request:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = dict(parse_qsl(query, keep_blank_values=True))
        body = self._chunks() if self._chunked() else self.rfile.read(min(self._length(), _PEEK))
        return Request(self.command, path, asked, headers, body)

    def _length(self) -> int:
        return 0 if self._chunked() else int(self.headers.get("Content-Length") or 0)

    def _chunked(self) -> bool:
        return "chunked" in (self.headers.get("Transfer-Encoding") or "").lower()

    def _chunks(self) -> bytes:
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            continue
        return b"".join(chunks)

    def _discard(self, count: int) -> None:
        while count > 0 and (block := self.rfile.read(min(count, _PEEK))):
            count -= len(block)

    def _reset(self) -> None:
        """Not an orderly end: the peer gets a reset."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.wfile.close()
        self.connection.close()
