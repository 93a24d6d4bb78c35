"""Google's own description of the Compute Engine API, asked about requests and answers.

`compute.v1.json` comes with google-api-python-client. A method, parameter or field that it does not name, a
value of another type, a word that is not among the allowed ones: each is an AssertionError that says where.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from hostler.emulators.gce import Seen

FORMATS = {
    "int64": re.compile(r"-?\d+"),
    "uint64": re.compile(r"\d+"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"),
    "google-datetime": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"),
    "google-duration": re.compile(r"-?\d+(\.\d+)?s"),
}
PYTHON = {"boolean": (bool,), "integer": (int,), "number": (int, float), "string": (str,)}
LIMITS = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1)}


@functools.cache
def document() -> dict[str, Any]:
    folder = files("googleapiclient").joinpath("discovery_cache", "documents")
    found: dict[str, Any] = json.loads(folder.joinpath("compute.v1.json").read_text(encoding="utf-8"))
    return found


def check_request(method: str, path: str, query: Mapping[str, str], body: Any) -> str:
    """The name of the method that is called (`instances.insert`); fails on what it does not take."""
    found, parts = _method(method, path)
    where = found["id"].removeprefix("compute.")
    for name, value in parts.items():
        _check(found["parameters"][name], value, f"{where} path {name}")
    _check_query(found, query, where)
    if "request" in found:
        assert body is not None, f"{where} needs a body"
        _check(found["request"], body, where)
    else:
        assert body in (None, {}), f"{where} takes no body, and got {body}"
    return str(where)


def check_answer(method: str, path: str, status: int, body: Any) -> None:
    """Fails on an answer that Google's API does not give."""
    found, _ = _method(method, path)
    where = f"answer of {found['id'].removeprefix('compute.')}"
    if status >= 400:
        error = body["error"]
        assert error["code"] == status, f"{where}: {error}"
        assert isinstance(error["message"], str) and error["message"], where
        assert all({"message", "reason", "domain"} <= set(one) for one in error["errors"]), (
            f"{where}: {error}"
        )
    elif "response" in found:
        _check(found["response"], body, where)
    else:
        assert not body, f"{where}: nothing was to be said, and it was {body}"


def check_seen(seen: Iterable[Seen], *, refused_too: bool = True) -> list[str]:
    """All that an emulator received and said; gives the methods that were called. `refused_too`: also what
    was asked for in requests that were refused, which a test of refusals may want to leave out."""
    called = []
    for one in seen:
        if one.status < 400 or refused_too:
            called.append(check_request(one.method, one.path, one.query, one.body))
        if one.answer is not None:
            check_answer(one.method, one.path, one.status, one.answer)
    return called


def _method(method: str, path: str) -> tuple[dict[str, Any], dict[str, str]]:
    rest = path.partition("?")[0].rpartition("/compute/v1/")[2].strip("/")
    for verb, pattern, found in _patterns():
        parts = pattern.fullmatch(rest) if verb == method else None
        if parts:
            return found, {name: unquote(value) for name, value in parts.groupdict().items()}
    raise AssertionError(f"Google has no {method} {path}")


@functools.cache
def _patterns() -> list[tuple[str, re.Pattern[str], dict[str, Any]]]:
    """Fixed words before names: `images/family/{family}` is not `images/{image}/family`."""
    made = []
    for resource in document()["resources"].values():
        for found in resource.get("methods", {}).values():
            path = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(found["flatPath"]))
            made.append((found["httpMethod"], re.compile(path), found))
    return sorted(made, key=lambda one: one[2]["flatPath"].count("{"))


def _check_query(method: Mapping[str, Any], query: Mapping[str, str], where: str) -> None:
    known = {name: one for name, one in method["parameters"].items() if one["location"] == "query"}
    for name, value in query.items():
        rule = known.get(name) or document()["parameters"].get(name)
        assert rule, f"{where} has no parameter {name}"
        _check_text(rule, value, f"{where} ?{name}")
    missing = [name for name, rule in known.items() if rule.get("required") and name not in query]
    assert not missing, f"{where} needs {missing}"


def _check_text(rule: Mapping[str, Any], value: str, where: str) -> None:
    """A parameter, which is text whatever its type."""
    kind = rule["type"]
    if kind == "boolean":
        assert value.lower() in ("true", "false"), f"{where} is {value!r}"
    elif kind == "integer":
        assert re.fullmatch(r"-?\d+", value), f"{where} is {value!r}"
        low, high = int(rule.get("minimum", -(2**31))), int(rule.get("maximum", 2**31 - 1))
        assert low <= int(value) <= high, f"{where} is {value}"
    else:
        _check(rule, value, where)


def _check(rule: Mapping[str, Any], value: Any, where: str) -> None:
    if "$ref" in rule:
        return _check(document()["schemas"][rule["$ref"]], value, where)
    kind = rule.get("type", "any")
    if kind == "object":
        return _check_object(rule, value, where)
    if kind == "array":
        assert isinstance(value, list), f"{where} is no list but {value!r}"
        for number, one in enumerate(value):
            _check(rule["items"], one, f"{where}[{number}]")
    elif kind != "any":
        _check_plain(rule, kind, value, where)
    return None


def _check_object(rule: Mapping[str, Any], value: Any, where: str) -> None:
    assert isinstance(value, dict), f"{where} is no object but {value!r}"
    known, more = rule.get("properties", {}), rule.get("additionalProperties")
    for name, one in value.items():
        assert name in known or more, f"{where} has no field {name}"
        _check(known.get(name, more), one, f"{where}.{name}")


def _check_plain(rule: Mapping[str, Any], kind: str, value: Any, where: str) -> None:
    right = isinstance(value, PYTHON[kind]) and (kind == "boolean" or not isinstance(value, bool))
    assert right, f"{where} is no {kind} but {value!r}"
    allowed, form = rule.get("enum"), rule.get("format", "")
    assert not allowed or value in allowed, f"{where} is {value!r}, not one of {', '.join(allowed)[:300]}"
    low, high = LIMITS.get(form, (value, value)) if kind == "integer" else (value, value)
    assert low <= value <= high, f"{where} is {value}, too large for {form}"
    if kind != "string":
        return
    pattern = FORMATS.get(form)
    assert not pattern or pattern.fullmatch(value), f"{where} is {value!r}, no {form}"
    assert "pattern" not in rule or re.fullmatch(rule["pattern"], value), (
        f"{where} is {value!r}: {rule['pattern']}"
    )
    if form == "byte":
        base64.b64decode(value, validate=True)
