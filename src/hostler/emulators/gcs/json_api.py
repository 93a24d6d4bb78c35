"""The JSON API but for uploads: buckets, listings, objects, copies."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from hostler.emulators.gcs.bucket import MOST, Query
from hostler.emulators.gcs.conditions import Conditions, check_tags, from_query
from hostler.emulators.gcs.media import media
from hostler.emulators.gcs.message import Answer, Request, bad_request, json_answer, unsupported
from hostler.emulators.gcs.objects import Object
from hostler.emulators.gcs.route import Kind, Route
from hostler.emulators.gcs.storage import Content, Storage

NO_CONTENT = Answer(204)


def answer_json(storage: Storage, request: Request, at: Route) -> Answer:
    if at.kind is Kind.BUCKET:
        return _bucket(storage, request, at.bucket)
    if at.kind is Kind.LIST:
        return _list(storage, request, at.bucket)
    if at.kind is Kind.COPY:
        return _made_of_others(storage, request, at)
    if at.kind in (Kind.READ, Kind.LOOK):
        return _read(storage, request, at)
    if at.kind is Kind.DELETE:
        storage.remove(at.bucket, at.key, from_query(request.query), request.query.get("generation"))
        return NO_CONTENT
    if at.kind is Kind.PATCH:
        return _patch(storage, request, at)
    raise unsupported(f"{request.method} {request.path}")


def _bucket(storage: Storage, request: Request, name: str) -> Answer:
    if not name and request.method == "POST":
        wanted = request.json().get("name")
        if not isinstance(wanted, str) or not wanted:
            raise bad_request("a bucket needs a name")
        return json_answer(storage.make_bucket(wanted).resource(request.base))
    if not name:
        items = [bucket.resource(request.base) for bucket in storage.buckets()]
        return json_answer({"kind": "storage#buckets", "items": items})
    if request.method == "DELETE":
        storage.remove_bucket(name)
        return NO_CONTENT
    if request.method != "GET":
        raise unsupported(f"{request.method} of a bucket")
    return json_answer(storage.bucket(name).resource(request.base))


def _list(storage: Storage, request: Request, bucket: str) -> Answer:
    asked = request.query
    for name in ("matchGlob", "includeTrailingDelimiter", "softDeleted"):
        if asked.get(name, "false").lower() != "false":
            raise unsupported(f"{name} in a listing")
    query = Query(
        asked.get("prefix", ""),
        asked.get("delimiter", ""),
        start=asked.get("startOffset", ""),
        end=asked.get("endOffset", ""),
        token=asked.get("pageToken", ""),
        most=page_size(asked.get("maxResults")),
    )
    page = storage.page(bucket, query)
    shown: dict[str, Any] = {"kind": "storage#objects"}
    shown |= {"items": [one.resource(request.base) for one in page.objects]} if page.objects else {}
    shown |= {"prefixes": page.prefixes} if page.prefixes else {}
    return json_answer(shown | ({"nextPageToken": page.token} if page.token else {}))


def page_size(asked: str | None) -> int:
    if asked is None:
        return MOST
    if not asked.isdigit() or asked == "0":
        raise bad_request(f"{asked!r} is not the size of a page")
    return min(int(asked), MOST)


def _read(storage: Storage, request: Request, at: Route) -> Answer:
    found = storage.get(at.bucket, at.key, request.query.get("generation"))
    from_query(request.query).check(found, reading=True)
    check_tags(request.headers, found, found.json_etag, reading=True)
    if at.kind is Kind.LOOK:
        return json_answer(found.resource(request.base))
    return media(found, request.headers, summed=True)


def _patch(storage: Storage, request: Request, at: Route) -> Answer:
    with storage.lock:
        found = storage.get(at.bucket, at.key, request.query.get("generation"))
        from_query(request.query).check(found)
        body = request.json()
        kept = found.metadata if request.method == "PATCH" else {}
        given = body.get("metadata", {})
        merged = {} if given is None else {**kept, **given}
        metadata = {name: str(value) for name, value in merged.items() if value is not None}
        changed = storage.patch(found, metadata, body.get("contentType") or found.content_type)
    return json_answer(changed.resource(request.base))


def _made_of_others(storage: Storage, request: Request, at: Route) -> Answer:
    verb, *target = at.action.split("/")
    with storage.lock:
        if verb == "compose" and not target:
            return json_answer(_compose(storage, request, at).resource(request.base))
        if verb in ("rewriteTo", "copyTo") and len(target) == 4:
            made = _copy(storage, request, at, unquote(target[1]), unquote(target[3]))
            return _copied(made, request.base, rewritten=verb == "rewriteTo")
    raise unsupported(at.action)


def _copied(made: Object, base: str, *, rewritten: bool) -> Answer:
    resource, size = made.resource(base), str(len(made.data))
    if not rewritten:
        return json_answer(resource)
    sizes = {"totalBytesRewritten": size, "objectSize": size}
    return json_answer({"kind": "storage#rewriteResponse", **sizes, "done": True, "resource": resource})


def _copy(storage: Storage, request: Request, at: Route, bucket: str, name: str) -> Object:
    source = storage.get(at.bucket, at.key, request.query.get("sourceGeneration"))
    from_query(request.query, "ifSource").check(source)
    changes = request.json()
    kind = changes.get("contentType", source.content_type)
    content = Content(source.data, kind, changes.get("metadata", source.metadata), source.composite)
    return storage.write(bucket, name, content, from_query(request.query))


def _compose(storage: Storage, request: Request, at: Route) -> Object:
    body, parts = request.json(), []
    for source_object in body.get("sourceObjects", []):
        source = storage.get(at.bucket, source_object["name"], source_object.get("generation"))
        if_generation_match = source_object.get("objectPreconditions", {}).get("ifGenerationMatch")
        Conditions(generation=None if if_generation_match is None else int(if_generation_match)).check(source)
        parts.append(source.data)
    facts = body.get("destination", {})
    content = Content(b"".join(parts), facts.get("contentType"), facts.get("metadata", {}), composite=True)
    return storage.write(at.bucket, at.key, content, from_query(request.query))
