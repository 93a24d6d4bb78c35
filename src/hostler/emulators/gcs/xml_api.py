"""The XML API: listings, objects and copies; what is uploaded in parts is in `xml_parts`."""

from __future__ import annotations

import base64
import hashlib
import re
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

from hostler.emulators.gcs.bucket import Page, Query
from hostler.emulators.gcs.conditions import check_tags, from_headers
from hostler.emulators.gcs.json_api import page_size
from hostler.emulators.gcs.media import media
from hostler.emulators.gcs.message import Answer, Request, bad_request, unsupported, xml_answer
from hostler.emulators.gcs.objects import SUMMED, Object, timestamp
from hostler.emulators.gcs.route import Kind, Route
from hostler.emulators.gcs.storage import Content, Storage, Upload
from hostler.trackers.crc32c import crc32c

NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
_META = "x-goog-meta-"


def answer_xml(storage: Storage, request: Request, at: Route) -> Answer:
    if at.kind is Kind.LIST:
        return _list(storage, request, at.bucket)
    if at.kind is Kind.BUCKET:
        return _bucket(storage, request, at.bucket)
    if at.kind in (Kind.READ, Kind.LOOK):
        return _read(storage, request, at)
    if at.kind is Kind.WRITE:
        return _write(storage, request, at)
    if at.kind is Kind.COPY:
        return _copy(storage, request, at)
    if at.kind is Kind.DELETE:
        storage.remove(at.bucket, at.key, from_headers(request.headers), request.query.get("generation"))
        return Answer(204)
    return answer_parts(storage, request, at)


def _bucket(storage: Storage, request: Request, name: str) -> Answer:
    if request.method == "PUT":
        storage.make_bucket(name)
    elif request.method == "DELETE":
        storage.remove_bucket(name)
        return Answer(204)
    elif request.method not in ("HEAD", "GET"):
        raise unsupported(f"{request.method} of a bucket")
    storage.bucket(name)
    return Answer()


def _list(storage: Storage, request: Request, bucket: str) -> Answer:
    asked = request.query
    if asked.get("list-type") != "2":
        raise unsupported("a listing without list-type=2")
    query = Query(
        asked.get("prefix", ""),
        asked.get("delimiter", ""),
        after=asked.get("start-after", ""),
        token=asked.get("continuation-token", ""),
        most=page_size(asked.get("max-keys")),
    )
    page = storage.page(bucket, query)
    return xml_answer(_listing(bucket, query, page, quoted=asked.get("encoding-type") == "url"))


def _listing(bucket: str, query: Query, page: Page, *, quoted: bool) -> str:
    def shown(name: str) -> str:
        return quote(name) if quoted else escape(name)

    rows = [
        f"<Contents><Key>{shown(one.name)}</Key><Generation>{one.generation}</Generation>"
        f"<MetaGeneration>{one.metageneration}</MetaGeneration>"
        f"<LastModified>{timestamp(one.updated)}</LastModified>"
        f"<ETag>{escape(one.xml_etag)}</ETag><Size>{len(one.data)}</Size></Contents>"
        for one in page.objects
    ]
    rows += [f"<CommonPrefixes><Prefix>{shown(name)}</Prefix></CommonPrefixes>" for name in page.prefixes]
    more = f"<NextContinuationToken>{page.token}</NextContinuationToken>" if page.token else ""
    return (
        f"<ListBucketResult {NAMESPACE}><Name>{bucket}</Name><Prefix>{shown(query.prefix)}</Prefix>"
        f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        f"{more}{''.join(rows)}</ListBucketResult>"
    )


def _read(storage: Storage, request: Request, at: Route) -> Answer:
    found = storage.get(at.bucket, at.key, request.query.get("generation"))
    from_headers(request.headers).check(found, reading=True)
    check_tags(request.headers, found, found.xml_etag, reading=True)
    return media(found, request.headers, summed=False)


def _write(storage: Storage, request: Request, at: Route) -> Answer:
    metadata = {n.removeprefix(_META): v for n, v in request.headers.items() if n.startswith(_META)}
    content = Content(request.body, request.headers.get("content-type"), metadata)
    with storage.lock:
        standing = storage.find(at.bucket, at.key)
        check_tags(request.headers, standing, standing.xml_etag if standing else "", reading=False)
        made = storage.write(at.bucket, at.key, content, from_headers(request.headers))
    return Answer(200, b"", made.xml_headers())


def _copy(storage: Storage, request: Request, at: Route) -> Answer:
    bucket, _, name = unquote(request.headers["x-goog-copy-source"]).lstrip("/").partition("/")
    if not name:
        raise bad_request("x-goog-copy-source names no object")
    source = storage.get(bucket, name)
    content = Content(source.data, source.content_type, source.metadata, source.composite)
    made: Object = storage.write(at.bucket, at.key, content, from_headers(request.headers))
    facts = f"<LastModified>{timestamp(made.updated)}</LastModified><ETag>{escape(made.xml_etag)}</ETag>"
    return xml_answer(f"<CopyObjectResult>{facts}</CopyObjectResult>", headers=made.xml_headers())


# Uploads in parts of the XML API: nothing is seen of them until they are put together, and then all.
#
# Putting together twice finds no upload the second time, as in GCS: a client whose answer was lost must cope.


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
