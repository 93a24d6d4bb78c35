"""A reverse proxy before a real S3 server that loses, delays, cuts or invents answers as told.

It counts what the server itself stored, so that a test can say: once.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Fault(Enum):
    REFUSE_503 = "503, the server never saw it"
    REFUSE_429 = "429, the server never saw it"
    REFUSE_500 = "500, the server never saw it"
    CONFLICT_409 = "409, the server never saw it"
    DENY_403 = "403, the server never saw it"
    DROP_BEFORE = "connection closed, the server never saw it"
    LOSE_503 = "the server did it, the answer becomes 503"
    LOSE_500 = "the server did it, the answer becomes 500"
    DROP_AFTER = "the server did it, the connection is closed instead of an answer"
    SLOW_AFTER = "the server did it at once, the answer comes late"
    SLOW_BEFORE = "it reaches the server late"
    CUT_BODY = "the answer's body ends half way"


INVENTED = {
    Fault.REFUSE_503: 503,
    Fault.REFUSE_429: 429,
    Fault.REFUSE_500: 500,
    Fault.CONFLICT_409: 409,
    Fault.DENY_403: 403,
}
LOST = {Fault.LOSE_503: 503, Fault.LOSE_500: 500}

Choose = Callable[[str, str], "Fault | None"]


@dataclass
class Proxy:
    """`choose(method, path)` says what happens to a request; None passes it."""

    upstream: str
    choose: Choose = lambda method, path: None
    delay: float = 1.5
    strips: tuple[str, ...] = ()  # headers that do not reach the server
    seen: list[tuple[str, str]] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def script(self, method: str, ending: str, faults: list[Fault]) -> None:
        """The next requests of this kind meet these faults, one each; later ones pass."""
        left = iter(faults)

        def choose(got: str, path: str) -> Fault | None:
            wanted = got == method and path.partition("?")[0].endswith(ending)
            return next(left, None) if wanted else None

        self.choose = choose

    def asked(self, method: str) -> list[str]:
        return [path for got, path in self.seen if got == method]


@contextmanager
def running(upstream: str) -> Iterator[Proxy]:
    proxy = Proxy(upstream)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy))
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with proxy.lock:
                proxy.seen.append((self.command, self.path))
                fault = proxy.choose(self.command, self.path)
            try:
                self.act(fault, body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any

        def act(self, fault: Fault | None, body: bytes) -> None:
            if fault in INVENTED:
                return self.answer(INVENTED[fault], [], b"")
            if fault is Fault.DROP_BEFORE:
                return self.drop()
            if fault is Fault.SLOW_BEFORE:
                time.sleep(proxy.delay)
            status, headers, data = self.forward(body)
            if fault in LOST:
                return self.answer(LOST[fault], [], b"")
            if fault is Fault.DROP_AFTER:
                return self.drop()
            if fault is Fault.SLOW_AFTER:
                time.sleep(proxy.delay)
            return self.answer(status, headers, data, cut=fault is Fault.CUT_BODY)

        def forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            upstream = http.client.HTTPConnection(urlsplit(proxy.upstream).netloc, timeout=30)
            try:
                headers = {k: v for k, v in self.headers.items() if k.lower() not in proxy.strips}
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                data = answer.read()
            finally:
                upstream.close()
            if self.command == "PUT" and answer.status == 200:
                with proxy.lock:
                    proxy.stored.append(self.path)
            return answer.status, answer.getheaders(), data

        def answer(
            self, status: int, headers: list[tuple[str, str]], data: bytes, *, cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in (
                    "content-length",
                    "transfer-encoding",
                    "connection",
                    "date",
                    "server",
                ):
                    self.send_header(name, value)
            length = {n.lower(): v for n, v in headers}.get("content-length", str(len(data)))
            self.send_header("Content-Length", length if self.command == "HEAD" else str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if cut else data)
            if cut:
                self.drop()

        def drop(self) -> None:
            self.wfile.flush()
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return

    return Handler
