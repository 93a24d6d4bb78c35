"""HTTP of the emulator: the API, tokens for whoever has no machine, control calls, faults in between."""

from __future__ import annotations

import socket
import struct
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

from hostler.emulators.gce.api.refusal import not_found, ordered
from hostler.emulators.gce.api.routes import Route
from hostler.emulators.gce.api.secretmanager import SecretManager
from hostler.emulators.gce.api.service import Service, locate
from hostler.emulators.gce.control import Control
from hostler.emulators.gce.faults import Faults
from hostler.emulators.gcs.faults import Fault
from hostler.emulators.gcs.message import Answer, Refusal, Request

CONTROL = "/_control/"
SECRETS = "/v1/projects/"  # where Secret Manager begins, which has a host of its own at Google


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, service: Service, faults: Faults, control: Control, secret_manager: SecretManager
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service, self.faults, self.control = service, faults, control
        self.secret_manager = secret_manager

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news; its thread ends."""

    def aside(self, request: Request) -> Answer:
        """What is not the API: control calls, and the metadata server of a person's own machine."""
        if request.path.startswith(CONTROL):
            return self.control.answer(request.path.removeprefix(CONTROL), request.json())
        try:
            return self.service.world.tokens.answer(request)
        except Refusal as refusal:
            return refusal.as_json()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: Server

    def handle_any(self) -> None:
        request = self._request()
        at = locate(request)
        if at is not None:
            self._call(request, at)
        elif request.path.startswith(SECRETS):
            self._send(self.server.secret_manager.answer(request))
        elif request.path == "/" or request.path.startswith((CONTROL, "/computeMetadata")):
            self._send(self.server.aside(request))
        else:
            self._send(not_found(request.path).answer())

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any

    def log_message(self, format: str, *args: object) -> None:
        return

    def _call(self, request: Request, at: Route) -> None:
        service = self.server.service
        fault = self.server.faults.choose(at.method) or Fault(done=True)
        answer = service.answer(request, at) if fault.done else Answer()
        if fault.status:
            plain = ordered(fault.status)
            answer = plain.answer() if plain else fault.mark(fault.answer().as_json())
        service.remember(request, at, answer, heard=not fault.reset)
        if fault.delay:
            time.sleep(fault.delay)
        if fault.reset:
            self._reset()
            return
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _request(self) -> Request:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return Request(self.command, path, dict(parse_qsl(query, keep_blank_values=True)), headers, body)

    def _reset(self) -> None:
        """Not an orderly end: the peer gets a reset."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.wfile.close()
        self.connection.close()
