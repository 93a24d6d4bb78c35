"""Uploads in parts of the XML API: nothing is seen of them until they are put together, and then all.

Putting together twice finds no upload the second time, as in GCS: a client whose answer was lost must cope.
"""

from __future__ import annotations

import base64
import hashlib
import re
from xml.sax.saxutils import escape

from hostler.emulators.gcs.conditions import from_headers
from hostler.emulators.gcs.message import Answer, Request, bad_request, unsupported, xml_answer
from hostler.emulators.gcs.objects import SUMMED
from hostler.emulators.gcs.route import Kind, Route
from hostler.emulators.gcs.storage import Content, Storage, Upload
from hostler.trackers.crc32c import crc32c

_PART = re.compile(r"<PartNumber>\s*(\d+)\s*</PartNumber>")


def answer_parts(storage: Storage, request: Request, at: Route) -> Answer:
    if at.kind is Kind.BEGIN:
        identity = storage.begin(Upload(at.bucket, at.key, request.headers.get("content-type")))
        return _named("InitiateMultipartUploadResult", at, f"<UploadId>{identity}</UploadId>")
    if at.kind is Kind.PART:
        return _part(storage, request)
    if at.kind is Kind.FINISH:
        return _finish(storage, request, at)
    if at.kind is Kind.ABORT:
        storage.upload(request.query["uploadId"])
        storage.forget(request.query["uploadId"])
        return Answer(204)
    raise unsupported(f"{request.method} {request.path}")


def _part(storage: Storage, request: Request) -> Answer:
    number = request.query.get("partNumber", "")
    if not number.isdigit() or not 1 <= int(number) <= 10_000:
        raise bad_request(f"{number!r} is not the number of a part")
    with storage.lock:
        storage.upload(request.query["uploadId"]).parts[int(number)] = request.body
    digest = hashlib.md5(request.body)
    hashes = [f"md5={base64.b64encode(digest.digest()).decode()}"]
    if len(request.body) <= SUMMED:
        hashes.append(f"crc32c={base64.b64encode(crc32c(request.body).to_bytes(4, 'big')).decode()}")
    return Answer(200, b"", {"ETag": f'"{digest.hexdigest()}"', "X-Goog-Hash": ",".join(hashes)})


def _finish(storage: Storage, request: Request, at: Route) -> Answer:
    numbers = [int(number) for number in _PART.findall(request.body.decode("utf-8", "replace"))]
    with storage.lock:
        upload = storage.upload(request.query["uploadId"])
        if not numbers or numbers != sorted(set(numbers)) or not set(numbers) <= set(upload.parts):
            raise bad_request("the parts are not those of the upload, in order")
        data = b"".join(upload.parts[number] for number in numbers)
        content = Content(data, upload.content_type, upload.metadata, composite=True)
        made = storage.write(at.bucket, at.key, content, from_headers(request.headers))
        storage.forget(request.query["uploadId"])
    rest = f"<ETag>{escape(made.xml_etag)}</ETag>"
    return _named("CompleteMultipartUploadResult", at, rest, made.xml_headers())


def _named(result: str, at: Route, rest: str, headers: dict[str, str] | None = None) -> Answer:
    names = f"<Bucket>{escape(at.bucket)}</Bucket><Key>{escape(at.key)}</Key>"
    space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    return xml_answer(f"<{result} {space}>{names}{rest}</{result}>", headers=headers)
