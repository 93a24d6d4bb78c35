"""The XML API: listings, objects and copies; what is uploaded in parts is in `xml_parts`."""

from __future__ import annotations

from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

from hostler.emulators.gcs.bucket import Page, Query
from hostler.emulators.gcs.conditions import check_tags, from_headers
from hostler.emulators.gcs.json_api import page_size
from hostler.emulators.gcs.media import media
from hostler.emulators.gcs.message import Answer, Request, bad_request, unsupported, xml_answer
from hostler.emulators.gcs.objects import Object, timestamp
from hostler.emulators.gcs.route import Kind, Route
from hostler.emulators.gcs.storage import Content, Storage
from hostler.emulators.gcs.xml_parts import answer_parts

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
