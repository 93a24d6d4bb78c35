"""Tells what a bucket's answer means from the driver's error: pure over its class name and text.

TAKEN and BUSY settle nothing about a write: the driver repeats requests by itself, so either may be
said of a write that was stored.
"""

from __future__ import annotations

import re
from enum import Enum

from hostler.errors import StoreError, StoreGone, StoreTooLarge, StoreUnreachable
from hostler.store.base import NotFound


class Answer(Enum):
    ABSENT = "no such object"
    NO_BUCKET = "no such bucket"
    DENIED = "not allowed"
    STALE = "the token is not accepted, or has expired"
    NO_CREDENTIALS = "no credentials found"
    TAKEN = "something is there, or another write is under way"
    NOTHING_THERE = "the range lies beyond the object"
    BUSY = "no answer, or an answer to try later"
    REFUSED = "the request is wrong"


_BY_CLASS = {
    "AlreadyExistsError": Answer.TAKEN,
    "PreconditionError": Answer.TAKEN,
    "PermissionDeniedError": Answer.DENIED,
    "UnauthenticatedError": Answer.STALE,
    "UnknownConfigurationKeyError": Answer.REFUSED,
    "InvalidPathError": Answer.REFUSED,
    "NotSupportedError": Answer.REFUSED,
    "ValueError": Answer.REFUSED,
}
_BY_STATUS = {401: Answer.STALE, 403: Answer.DENIED, 404: Answer.ABSENT, 408: Answer.BUSY, 409: Answer.TAKEN}
_BY_STATUS |= {412: Answer.TAKEN, 416: Answer.NOTHING_THERE, 425: Answer.BUSY, 429: Answer.BUSY}

_STATUS = re.compile(r"status code: (\d{3})")
_LATER = re.compile(r"status code: (?:5\d\d|429)")  # said by a metadata server, it is there
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|InvalidBucketName")
_BEYOND = re.compile(r"Wanted range starting at \d+, but object was only")
_METADATA = re.compile(r"169\.254\.169\.254|169\.254\.170\.2|metadata\.google|metadata/identity")
_CODE = re.compile(r"<Code>(.*?)</Code>")
_MESSAGE = re.compile(r"<Message>(.*?)</Message>", re.DOTALL)
_ASKED = re.compile(r"Error performing (\w+) ([^\s?]+)\S* in .*? - (.+)")
_SYSTEM = re.compile(r'\bOs \{[^}]*message: "([^"]+)"')

_CREDENTIALS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "run `gcloud auth application-default login`, or set GOOGLE_SERVICE_ACCOUNT to a key file",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}


def read_answer(kind: str, text: str) -> Answer:
    """The meaning of an error whose class is called `kind`."""
    if _METADATA.search(text) and not _LATER.search(text):
        return Answer.NO_CREDENTIALS
    if _NO_BUCKET.search(text):
        return Answer.NO_BUCKET
    if kind == "FileNotFoundError":
        return Answer.ABSENT
    if kind in _BY_CLASS:
        return _BY_CLASS[kind]
    if _BEYOND.search(text):
        return Answer.NOTHING_THERE
    status = _STATUS.search(text)
    if status:
        number = int(status[1])
        return _BY_STATUS.get(number, Answer.BUSY if number >= 500 else Answer.REFUSED)
    return Answer.REFUSED if "redirect" in text or "AccessDenied" in text else Answer.BUSY


def explain(answer: Answer, url: str, key: str, text: str) -> StoreError:
    """The error to raise for it: one line, and what to do."""
    said = _said(text)
    if answer is Answer.ABSENT:
        return NotFound(f"{key} does not exist in {url}")
    if answer is Answer.NO_BUCKET:
        return StoreGone(f"{url}: the bucket does not exist", "create it, or check its name and the endpoint")
    if answer is Answer.DENIED:
        return StoreError(
            f"{url}: access to {key or 'it'} is denied: {said}", "check the credentials and their rights"
        )
    login = _CREDENTIALS.get(url.partition("://")[0], "set them")
    if answer is Answer.STALE:
        return StoreError(f"{url}: the credentials are not accepted: {said}", login)
    if answer is Answer.NO_CREDENTIALS:
        return StoreError(f"{url}: no credentials were found", login)
    if answer is Answer.BUSY:
        return StoreUnreachable(
            f"{url} does not answer: {said}", "check the network and the endpoint, then try again"
        )
    if "EntityTooLarge" in text or "status code: 413" in text:
        return StoreTooLarge(f"{url} takes no object as large as {key}", "use another store")
    return StoreError(
        f"{url}: {key or 'the request'} was refused: {said}", "check the store's address and region"
    )


def _said(text: str) -> str:
    """The server's own words if there are any, else the driver's, in one line."""
    code, message = _CODE.search(text), _MESSAGE.search(text)
    if code:
        return " ".join(f"{code[1]}: {message[1] if message else ''}".split())
    plain = " ".join(text.split("Debug source", 1)[0].split())
    if asked := _ASKED.search(plain):  # without its query, which is ours, and its retries, which are over
        system = _SYSTEM.search(text)
        return f"{asked[1]} {asked[2]}: {system[1] if system else asked[3]}"[:300]
    return plain[-300:]
