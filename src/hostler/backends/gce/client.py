"""Compute Engine's REST API over the standard library: calls, pages, operations. Workers use it, too.

Every change carries a `requestId`, so that one whose answer was lost is asked for again and done once. What
asks to wait is asked again, a bounded time. Errors that come with a finished operation are raised like
those of a call: `GceRefusal`.
"""

from __future__ import annotations

import http.client
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from hostler.backends import answer_form
from hostler.backends.answer_form import either, number, rows, table, text, texts, whole
from hostler.backends.capacity import AGAIN, Reason
from hostler.backends.gce import reasons
from hostler.errors import CloudError, CloudUnavailable

GOOGLE = "https://compute.googleapis.com"
ANSWER = 150.0  # seconds for one answer: a wait for an operation takes up to two minutes
PATIENCE = 120.0  # seconds that a call is repeated
OPERATION = 900.0  # seconds that an operation may take
PAGE = 500

Body = dict[str, Any]


def _scopes(value: Any) -> bool:
    """Things by zone and region."""
    return isinstance(value, dict) and all(isinstance(one, dict) for one in value.values())


FORMS: Mapping[str, answer_form.Form] = {
    **dict.fromkeys(("name", "zone", "region", "description", "family", "nextPageToken"), text),
    **dict.fromkeys(("endTime", "metric", "usageUnit", "usageType", "contents", "location"), text),
    **dict.fromkeys(("labels", "metadata", "category", "pricingExpression", "unitPrice", "payload"), table),
    **dict.fromkeys(("instances", "disks", "instanceGroupManagers", "secrets"), rows),
    **dict.fromkeys(("quotas", "skus", "pricingInfo", "tieredRates", "managedInstances", "operations"), rows),
    "serviceRegions": texts,
    "zones": either(texts, rows),  # of a region, and of a group's policy
    "targetSize": either(whole, table),  # of a group, and of each of its versions
    **dict.fromkeys(("archiveSizeBytes", "diskSizeGb", "units", "nanos"), whole),
    **dict.fromkeys(("limit", "usage"), number),
    "items": either(rows, texts, _scopes),  # things, network tags, things by zone
    "errors": either(rows, table),
    "error": table,
    "deprecated": table,
}


class GceRefusal(CloudError):
    """Compute Engine said no; `why` is what that means, `code` and `status` what it said."""

    def __init__(self, what: str, why: Reason, code: str, said: str, status: int = 0) -> None:
        detail = f": {said}" if said else f" ({code})" if code else ""
        line = f"{why.words}{detail}{f' ({what})' if what else ''}"
        super().__init__(" ".join(line.split()), why.hint)  # what it said may be a whole page
        self.why, self.code, self.said, self.status = why, code, said, status


@dataclass
class GceClient:
    """`token` gives a bearer token, or '' where none is wanted."""

    project: str
    endpoint: str = GOOGLE
    token: Callable[[], str] = lambda: ""
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    patience: float = PATIENCE
    api: str = "/compute/v1"
    service: str = "Compute Engine"
    under: str = ""  # where paths begin, if not at the project
    _base: str = field(init=False)

    def __post_init__(self) -> None:
        endpoint = self.endpoint.rstrip("/")
        root = endpoint if endpoint.endswith(self.api) else f"{endpoint}{self.api}"
        self._base = f"{root}/{self.under or f'projects/{self.project}'}"

    def url(self, path: str) -> str:
        """By which other resources name this one."""
        return f"projects/{self.project}/{path}"

    def get(self, path: str, **query: str | int) -> Body:
        return self._call("GET", path, query, None)

    def find(self, path: str, **query: str | int) -> Body | None:
        """The thing at a path; None if it does not exist."""
        try:
            return self.get(path, **query)
        except GceRefusal as error:
            if error.status != 404:
                raise
            return None

    def list(self, path: str, **query: str | int) -> Iterator[Body]:
        for page in self._pages("GET", path, query):
            yield from self._named(page.get("items") or ())

    def aggregated(self, kind: str, **query: str | int) -> Iterator[Body]:
        """Things of all zones and regions."""
        for page in self._pages("GET", f"aggregated/{kind}", query):
            scopes = page.get("items") or {}
            if not isinstance(scopes, dict):
                raise self._strange()
            for scope in scopes.values():
                yield from self._named(scope.get(kind) or ())

    def managed(self, group: str) -> Iterator[Body]:
        """VMs that a group holds, and is about to hold."""
        for page in self._pages("POST", f"{group}/listManagedInstances", {}):
            yield from page.get("managedInstances") or ()

    def advise(self, path: str, body: Body) -> Body:
        """A question that has a body; asked once, since nothing depends on the answer."""
        return self._once("POST", path, {}, body)

    def ask_again(self, verb: str, path: str, body: Body | None = None, **query: str | int) -> Body:
        """Something that may be done twice, and is done when it is answered."""
        return self._call(verb, path, query, body)

    def insert(self, path: str, body: Body) -> None:
        self.change("POST", path, body)

    def change(self, verb: str, path: str, body: Body | None = None, **query: str | int) -> None:
        """Do it, once however often it is asked for, and wait until it is done."""
        self.finish(self.begin(verb, path, body, **query))

    def begin(self, verb: str, path: str, body: Body | None = None, **query: str | int) -> Body:
        """The operation that does it; nobody has to wait for that."""
        operation = self._call(verb, path, {**query, "requestId": str(uuid.uuid4())}, body)
        if "name" not in operation:
            raise self._strange()
        return operation

    def delete(self, path: str) -> bool:
        """False if it was gone already."""
        try:
            self.change("DELETE", path)
        except GceRefusal as error:
            if error.status == 404 or reasons.reason(error.code) == reasons.reason("notFound"):
                return False
            raise
        return True

    def finish(self, operation: Body) -> None:
        """Wait for an operation; GceRefusal if it failed. Google's own wait is best effort, so this loops."""
        path, end = _path_of(operation), self.clock() + OPERATION
        while operation.get("status") != "DONE":
            if self.clock() >= end:
                raise CloudUnavailable(
                    f"{_what(operation)}: not done after {OPERATION:g} s",
                    "run the same command again: it continues",
                )
            operation = self._call("POST", f"{path}/wait", {}, None)
        errors = (operation.get("error") or {}).get("errors") or []
        if errors:
            raise failed(_what(operation), errors[0] if isinstance(errors, list) else errors)

    def _pages(self, verb: str, path: str, query: Mapping[str, str | int]) -> Iterator[Body]:
        token, known = "", set[str]()
        while True:
            more = {**query, "maxResults": PAGE, **({"pageToken": token} if token else {})}
            page = self._call(verb, path, more, None)
            yield page
            token = page.get("nextPageToken") or ""
            if not token:
                return
            if not isinstance(token, str) or not token.isascii() or token in known:  # it would never end
                raise self._strange()
            known.add(token)

    def _named(self, found: Any) -> Iterator[Body]:
        for one in found if isinstance(found, list) else ():
            if not isinstance(one, dict) or not isinstance(one.get("name") or one.get("targetLink"), str):
                raise self._strange()
            yield one

    def _strange(self) -> CloudUnavailable:
        """JSON of an address that is not the service's: perhaps a proxy's."""
        return CloudUnavailable(
            f"what answers at {self.endpoint} is not {self.service}",
            "check the network and its proxy, then run the same command again: it continues",
        )

    def _call(self, verb: str, path: str, query: Mapping[str, str | int], body: Body | None) -> Body:
        end, wait = self.clock() + self.patience, 0.5
        while True:
            try:
                return self._once(verb, path, query, body)
            except (GceRefusal, CloudUnavailable) as error:
                again = not isinstance(error, GceRefusal) or error.why.then == AGAIN
                if not again or self.clock() + wait >= end:
                    raise
            self.pause(wait)
            wait = min(wait * 2, 15.0)

    def _once(self, verb: str, path: str, query: Mapping[str, str | int], body: Body | None) -> Body:
        url = f"{self._base}/{path}" if path else self._base
        url += f"?{urlencode(query)}" if query else ""
        data = json.dumps(body).encode() if body is not None else b"" if verb == "POST" else None
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        try:
            if token := self.token():
                headers["Authorization"] = f"Bearer {token}"
            with urlopen(Request(url, data, headers, method=verb), timeout=ANSWER) as answer:
                found = json.loads(answer.read() or b"{}")
        except HTTPError as error:
            raise _refused(f"{verb} {path}", error.code, error.read()) from None
        except (
            TimeoutError,
            URLError,
            http.client.HTTPException,
            ConnectionError,
            ValueError,
            RecursionError,
        ) as error:
            raise CloudUnavailable(
                f"{self.service} does not answer: {getattr(error, 'reason', None) or error!r}",
                "check the network, then run the same command again: it continues",
            ) from None
        if not isinstance(found, dict) or not answer_form.fits(found, FORMS):
            raise self._strange()
        return found


def failed(what: str, error: Mapping[str, Any]) -> GceRefusal:
    """An error of an operation, or of a group's last attempt, as an exception."""
    code, said = str(error.get("code", "")), str(error.get("message", ""))
    return GceRefusal(what, reasons.reason(code, said), code, said)


def _refused(what: str, status: int, data: bytes) -> GceRefusal:
    try:
        error = json.loads(data)["error"]
        said = str(error.get("message", ""))
        code = str((error.get("errors") or [{}])[0].get("reason", "") or _detailed(error))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        code, said = "", data[:200].decode(errors="replace").strip()
    return GceRefusal(what, reasons.of_call(status, code, said), code, said, status)


def _detailed(told: Mapping[str, Any]) -> str:
    """The reason as Google's newer services give it, or else the status."""
    details = [detail for detail in told.get("details") or [] if isinstance(detail, dict)]
    found = next((detail["reason"] for detail in details if detail.get("reason")), "")
    return str(found or told.get("status", ""))


def _path_of(operation: Body) -> str:
    for scope in ("zone", "region"):
        if operation.get(scope):
            return f"{scope}s/{operation[scope].rsplit('/', 1)[-1]}/operations/{operation['name']}"
    return f"global/operations/{operation['name']}"


def _what(operation: Body) -> str:
    target = str(operation.get("targetLink", "")).rsplit("/", 1)[-1]
    return f"{operation.get('operationType', 'operation')} {target}".strip()
