"""Label and field selectors, as pure predicates over objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from hostler.emulators.k8s.api.refusal import bad_request
from hostler.emulators.k8s.storage import Obj

Test = Callable[[Obj], bool]
_SET = re.compile(r"([^\s!=,()]+)\s+(in|notin)\s+\(([^)]*)\)")
_EQUAL = re.compile(r"([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)")
_EXISTS = re.compile(r"(!?)\s*([^\s!=,()]+)")


def chosen(query: Mapping[str, str]) -> Test:
    """By the labelSelector and fieldSelector of a request."""
    tests = [*_labels(query.get("labelSelector", "")), *_fields(query.get("fieldSelector", ""))]
    return lambda thing: all(test(thing) for test in tests)


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """A selector as objects write it: matchLabels and matchExpressions."""
    wanted = (selector or {}).get("matchLabels") or {}
    rules = (selector or {}).get("matchExpressions") or []
    plain = all(labels.get(key) == value for key, value in wanted.items())
    return plain and all(expression(rule, labels) for rule in rules)


def expression(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values") or []
    number = int(value) if value is not None and re.fullmatch(r"-?\d+", value) else None
    return {
        "In": lambda: value in values,
        "NotIn": lambda: value not in values,
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
        "Gt": lambda: number is not None and number > int(values[0]),
        "Lt": lambda: number is not None and number < int(values[0]),
    }[rule["operator"]]()


def _labels(text: str) -> list[Test]:
    return [_label(part) for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _label(part: str) -> Test:
    part = part.strip()
    if match := _SET.fullmatch(part):
        key, word, values = match[1], match[2], [one.strip() for one in match[3].split(",")]
        return lambda thing: (_of(thing).get(key) in values) == (word == "in")
    if match := _EQUAL.fullmatch(part):
        key, word, value = match[1], match[2], match[3]
        return lambda thing: (_of(thing).get(key) == value) == (word != "!=")
    if match := _EXISTS.fullmatch(part):
        key, absent = match[2], bool(match[1])
        return lambda thing: (key in _of(thing)) != absent
    raise bad_request(f"unable to parse requirement: {part}")


def _of(thing: Obj) -> dict[str, str]:
    return thing["metadata"].get("labels") or {}


def _fields(text: str) -> list[Test]:
    return [_field(part.strip()) for part in text.split(",") if part.strip()]


def _field(part: str) -> Test:
    match = _EQUAL.fullmatch(part)
    if not match:
        raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    path, equal, value = match[1].split("."), match[2] != "!=", match[3]

    def test(thing: Obj) -> bool:
        at: Any = thing
        for word in path:
            at = at.get(word) if isinstance(at, dict) else None
        return (str("" if at is None else at) == value) == equal

    return test
