"""Uploads of the JSON API: in one request (plain or with facts beside the bytes), or resumable.

A resumable upload checks its condition when it begins and again when its last byte takes effect. What was
received already and is sent again is dropped, so that a client may repeat a chunk whose answer was lost.
"""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from hostler.emulators.gcs.conditions import from_query
from hostler.emulators.gcs.message import Answer, Request, bad_request, json_answer, unsupported
from hostler.emulators.gcs.multipart import boundary_of, parts_of
from hostler.emulators.gcs.route import Kind, Route
from hostler.emulators.gcs.storage import Content, Storage, Upload

_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


def answer_upload(storage: Storage, request: Request, at: Route) -> Answer:
    if at.kind is Kind.BEGIN:
        return _begin(storage, request, at)
    if at.kind is Kind.PART:
        with storage.lock:
            return _chunk(storage, request)
    if at.kind is Kind.ABORT:
        storage.upload(request.query["upload_id"])
        storage.forget(request.query["upload_id"])
        return Answer(499)
    kind = request.query.get("uploadType")
    if kind == "media":
        return _whole(
            storage, request, at, at.key, Content(request.body, request.headers.get("content-type"))
        )
    if kind == "multipart":
        return _related(storage, request, at)
    raise unsupported(f"uploadType={kind}")


def name_in(request: Request) -> str:
    """The object's name where only the body tells it; '' if it does not."""
    match = re.search(rb'"name":\s*("(?:[^"\\]|\\.)*")', request.body[:65536])
    return str(json.loads(match[1])) if match else ""


def _whole(storage: Storage, request: Request, at: Route, name: str, content: Content) -> Answer:
    if not name:
        raise bad_request("an object needs a name")
    made = storage.write(at.bucket, name, content, from_query(request.query))
    return json_answer(made.resource(request.base))


def _related(storage: Storage, request: Request, at: Route) -> Answer:
    parts = parts_of(request.body, boundary_of(request.headers.get("content-type", "")))
    if len(parts) != 2:
        raise bad_request("a multipart upload has two parts")
    facts = Request("", "", {}, {}, parts[0].body).json()
    kind = facts.get("contentType") or parts[1].headers.get("content-type")
    content = Content(parts[1].body, kind, facts.get("metadata") or {})
    return _whole(storage, request, at, facts.get("name") or at.key, content)


def _begin(storage: Storage, request: Request, at: Route) -> Answer:
    facts, conditions = request.json(), from_query(request.query)
    name = facts.get("name") or at.key
    if not name:
        raise bad_request("an object needs a name")
    kind = facts.get("contentType") or request.headers.get("x-upload-content-type")
    conditions.check(storage.find(at.bucket, name))
    identity = storage.begin(Upload(at.bucket, name, kind, conditions, facts.get("metadata") or {}))
    target = f"{request.base}/upload/storage/v1/b/{at.bucket}/o?uploadType=resumable"
    location = f"{target}&name={quote(name, safe='')}&upload_id={identity}"
    return Answer(200, b"", {"Location": location, "X-GUploader-UploadID": identity})


def _chunk(storage: Storage, request: Request) -> Answer:
    upload = storage.upload(request.query["upload_id"])
    if upload.done is not None:
        return json_answer(upload.done.resource(request.base))
    total = _receive(upload.received, request)
    if total is None or len(upload.received) < total:
        kept = {"Range": f"bytes=0-{len(upload.received) - 1}"} if upload.received else {}
        return Answer(308, b"", kept)
    content = Content(bytes(upload.received), upload.content_type, upload.metadata)
    upload.done = storage.write(upload.bucket, upload.name, content, upload.conditions)
    upload.received.clear()
    return json_answer(upload.done.resource(request.base))


def _receive(received: bytearray, request: Request) -> int | None:
    """Append what is new; the total size, if the client knows it yet."""
    content_range = request.headers.get("content-range")
    if content_range is None:
        received[:] = request.body
        return len(received)
    match = _CONTENT_RANGE.fullmatch(content_range)
    if not match or (match[1] and int(match[1]) > len(received)):
        raise bad_request(f"Content-Range {content_range!r} does not continue at {len(received)}")
    if match[1]:
        received += request.body[len(received) - int(match[1]) :]
    return None if match[3] == "*" else int(match[3])
