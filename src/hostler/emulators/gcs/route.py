"""Finds a request's API, kind and object. Pure over its head.

`Kind` is the vocabulary of faults and counters, the same for both APIs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from urllib.parse import unquote

from hostler.frozen import dataclass


class Kind(Enum):
    READ = "bytes of an object"
    LOOK = "facts of an object"
    WRITE = "an object in one request"
    BEGIN = "a large upload begins"
    PART = "a part of a large upload"
    FINISH = "a large upload is put together"
    ABORT = "a large upload is given up"
    COPY = "objects made of others"
    PATCH = "facts of an object are changed"
    DELETE = "an object is removed"
    LIST = "a page of a listing"
    BUCKET = "a bucket is made, shown or removed"
    BATCH = "several requests in one"
    TOKEN = "the metadata server"
    OTHER = "something else"


class Api(Enum):
    JSON = "json"
    UPLOAD = "upload"
    BATCH = "batch"
    METADATA = "metadata"
    XML = "xml"


@dataclass(frozen=True)
class Route:
    api: Api
    kind: Kind
    bucket: str = ""
    key: str = ""  # of the object, or the prefix of a listing
    action: str = ""  # what follows the object in the JSON API


_JSON = re.compile(r"/(?:download/)?storage/v1/b(?:/([^/]+)(/o(?:/([^/]+)(?:/(.+))?)?)?)?")
_UPLOAD = re.compile(r"/(?:resumable/)?upload/storage/v1/b/([^/]+)/o")


def route(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Route:
    if path == "/" or path.startswith("/computeMetadata"):
        return Route(Api.METADATA, Kind.TOKEN)
    if path.startswith("/batch/"):
        return Route(Api.BATCH, Kind.BATCH)
    if match := _UPLOAD.fullmatch(path):
        return Route(Api.UPLOAD, _of_upload(method, query), unquote(match[1]), query.get("name", ""))
    if match := _JSON.fullmatch(path):
        return _json(method, path, query, match)
    bucket, _, key = path[1:].partition("/")
    named = unquote(key) or query.get("prefix", "")
    return Route(Api.XML, _of_xml(method, key, query, headers), unquote(bucket), named)


def _json(method: str, path: str, query: Mapping[str, str], found: re.Match[str]) -> Route:
    bucket, objects, key, action = (unquote(part or "") for part in found.groups())
    if not objects:
        return Route(Api.JSON, Kind.BUCKET, bucket)
    if not key:
        kind = Kind.LIST if method == "GET" else Kind.OTHER
        return Route(Api.JSON, kind, bucket, query.get("prefix", ""))
    if action:
        return Route(Api.JSON, Kind.COPY if method == "POST" else Kind.OTHER, bucket, key, found[4])
    media = path.startswith("/download/") or query.get("alt") == "media"
    kinds = {"GET": Kind.READ if media else Kind.LOOK, "DELETE": Kind.DELETE}
    kinds |= {"PATCH": Kind.PATCH, "PUT": Kind.PATCH}
    return Route(Api.JSON, kinds.get(method, Kind.OTHER), bucket, key)


def _of_upload(method: str, query: Mapping[str, str]) -> Kind:
    if query.get("upload_id"):
        return Kind.ABORT if method == "DELETE" else Kind.PART
    return Kind.BEGIN if query.get("uploadType") == "resumable" else Kind.WRITE


def _of_xml(method: str, key: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Kind:
    if not key:
        return Kind.LIST if method == "GET" and "location" not in query else Kind.BUCKET
    if "uploadId" in query:
        kinds = {"PUT": Kind.PART, "POST": Kind.FINISH, "DELETE": Kind.ABORT}
        return kinds.get(method, Kind.OTHER)
    if method == "POST":
        return Kind.BEGIN if "uploads" in query else Kind.OTHER
    if method == "PUT":
        return Kind.COPY if "x-goog-copy-source" in headers else Kind.WRITE
    return {"GET": Kind.READ, "HEAD": Kind.LOOK, "DELETE": Kind.DELETE}.get(method, Kind.OTHER)
