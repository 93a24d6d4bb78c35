"""HTTP of the emulator: requests in, answers out, faults in between.

The beginning of a body is read before a fault is chosen, since uploads of the JSON API tell their
object's name there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from hostler.emulators.gcs.counts import Counts
from hostler.emulators.gcs.faults import Fault, Faults
from hostler.emulators.gcs.json_api import answer_json
from hostler.emulators.gcs.message import Answer, Refusal, Request, bad_request
from hostler.emulators.gcs.multipart import Part, boundary_of, part_of, parts_of
from hostler.emulators.gcs.route import Api, Route, route
from hostler.emulators.gcs.storage import Storage
from hostler.emulators.gcs.tokens import Tokens, unauthenticated
from hostler.emulators.gcs.uploads import answer_upload, name_in
from hostler.emulators.gcs.xml_api import answer_xml
from hostler.emulators.serving import Handler, LoopbackServer

_BOUNDARY = "batch_of_answers"

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


class Server(LoopbackServer):
    def __init__(self, service: Service) -> None:
        super().__init__(_Handler)
        self.service = service

    @property
    def url(self) -> str:
        return f"http://{self.host}"


class _Handler(Handler):
    server: Server

    def answer(self) -> None:
        service = self.server.service
        head = self._peek()
        at = route(head.method, head.path, head.query, head.headers)
        if at.api is Api.UPLOAD and not at.key:
            at = replace(at, key=name_in(head))
        service.counts.add(at)
        fault = service.faults.choose(at)
        if fault is not None and fault.cut:
            self._discard(self._length() // 2 - len(head.body))
            self.reset()
        request = replace(head, body=head.body + self.rfile.read(self._length() - len(head.body)))
        return self._respond(request, at, fault or Fault(done=True))

    def _respond(self, request: Request, at: Route, fault: Fault) -> None:
        answer = self.server.service.answer(request, at) if fault.done else Answer()
        if fault.delay:
            self.wfile.flush()
            time.sleep(fault.delay)
        if fault.reset:
            self.reset()
        if fault.status:
            answer = fault.mark(refused(fault.answer(), at))
        cut = len(answer.body) // 2 if fault.halved else None
        self.send(answer.status, answer.body, answer.headers, cut)
        self.close_connection = self.close_connection or fault.halved

    def _peek(self) -> Request:
        path, query, headers = self.head()
        body = self._chunks() if self._chunked() else self.rfile.read(min(self._length(), _PEEK))
        return Request(self.command, path, query, headers, body)

    def _length(self) -> int:
        return 0 if self._chunked() else self.length()

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


def answer_batch(storage: Storage, request: Request) -> Answer:
    parts = parts_of(request.body, boundary_of(request.headers.get("content-type", "")))
    blocks = [_framed(part, _one(storage, request, part)) for part in parts]
    body = b"".join(blocks) + f"--{_BOUNDARY}--\r\n".encode()
    return Answer(200, body, {"Content-Type": f"multipart/mixed; boundary={_BOUNDARY}"})


def _one(storage: Storage, outer: Request, part: Part) -> Answer:
    line, _, rest = part.body.lstrip().partition(b"\n")
    words = line.decode("utf-8", "replace").split()
    if len(words) != 3:
        raise bad_request(f"{line!r} is not the first line of a request")
    url = urlsplit(words[1])
    inner = part_of(rest)
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    headers = {**inner.headers, "host": outer.headers.get("host", "")}
    asked = Request(words[0], url.path, query, headers, inner.body.strip())
    at = route(asked.method, asked.path, query, headers)
    try:
        if at.api is not Api.JSON:
            raise bad_request(f"{url.path} cannot be part of a batch")
        return answer_json(storage, asked, at)
    except Refusal as refusal:
        return refusal.as_json()


def _framed(part: Part, answer: Answer) -> bytes:
    identity = part.headers.get("content-id", "").strip("<>")
    head = [
        f"--{_BOUNDARY}",
        "Content-Type: application/http",
        f"Content-ID: <response-{identity}>",
        "",
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
        f"Content-Length: {len(answer.body)}",
        "",
        "",
    ]
    return "\r\n".join(head).encode() + answer.body + b"\r\n"
