"""Several JSON API calls in one request, each answered on its own."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from hostler.emulators.gcs.json_api import answer_json
from hostler.emulators.gcs.message import Answer, Refusal, Request, bad_request
from hostler.emulators.gcs.multipart import Part, boundary_of, part_of, parts_of
from hostler.emulators.gcs.route import Api, route
from hostler.emulators.gcs.storage import Storage

_BOUNDARY = "batch_of_answers"


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
