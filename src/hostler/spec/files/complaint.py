"""Turns what validation found wrong into one line: file, line, key, value, and what would be right."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from hostler.errors import SpecError
from hostler.spec.files.yaml12 import Document, Path
from hostler.spec.nearest import did_you_mean

Found = Mapping[str, Any]  # one error, as pydantic lists it: type, loc, input, msg, ctx

_IS_NOT = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table (key: value)",
    "model_type": "a table (key: value)",
    "model_attributes_type": "a table (key: value)",
}


def complaint(document: Document, errors: Sequence[Found]) -> SpecError:
    """The first error in the file, in words."""
    first = min(errors, key=lambda error: document.lines.get(_path(error), 0))
    path = _as_written(_path(first), document)
    message, hint = _sentence(first)
    shown = _dotted(path[:-1] if first["type"] == "unknown_key" else path)
    return SpecError(f"{shown}: {message}" if shown else message, hint, where=document.where(path))


def _path(error: Found) -> Path:
    """Where it is in the file: pydantic's own steps (a union's tag, a table's key) taken out."""
    loc: Path = tuple(step for step in error["loc"] if step != "[key]")
    if loc[:1] == ("fleets",) and len(loc) > 2:
        loc = (*loc[:2], *loc[3:])
    if loc[:1] == ("style",):
        loc = ("style", *loc[2:])
    if error["type"] == "union_tag_invalid":
        return (*loc, "backend")
    key = error.get("ctx", {}).get("key")
    return (*loc, key) if key else loc


def _as_written(path: Path, document: Document) -> Path:
    """Without positions in a list that the file does not have: a single value may stand for a list of one."""
    found: Path = ()
    for step in path:
        if not isinstance(step, int) or (*found, step) in document.lines:
            found = (*found, step)
    return found


def _dotted(path: Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _sentence(error: Found) -> tuple[str, str]:
    """(what is wrong, what would be right)."""
    kind, given, context = error["type"], error.get("input"), error.get("ctx", {})
    if kind == "unknown_key":
        return f"no such key {context['key']!r}", context["hint"]
    if kind == "at_key":
        return error["msg"], context["hint"]
    if kind == "value_error":
        return str(context["error"]), ""
    if kind == "missing":
        return "is missing", ""
    if given is None:
        return "has no value", ""
    if kind in _IS_NOT:
        hint = "put it in quotes" if kind == "string_type" and isinstance(given, (int, float)) else ""
        return f"{reprlib.repr(given)} is not {_IS_NOT[kind]}", hint
    return _choice(kind, given, context) or _bound(kind, context) or (error["msg"], "")


def _choice(kind: str, given: Any, context: Mapping[str, Any]) -> tuple[str, str] | None:
    if kind == "literal_error":
        expected = context["expected"]
        known = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
        return f"{reprlib.repr(given)} is not {expected}", did_you_mean(str(given), known)
    if kind == "union_tag_invalid":
        known = [word.strip("'") for word in context["expected_tags"].split(", ")]
        return f"{context['tag']!r} is not a backend", did_you_mean(context["tag"], known, ", ".join(known))
    if kind == "union_tag_not_found":
        return "backend is missing", ""
    return None


def _bound(kind: str, context: Mapping[str, Any]) -> tuple[str, str] | None:
    bounds = {
        "greater_than": ("must be more than", "gt"),
        "greater_than_equal": ("must be at least", "ge"),
        "less_than_equal": ("must be at most", "le"),
    }
    if kind in bounds:
        words, name = bounds[kind]
        return f"{words} {context[name]:g}", ""
    return ("is empty", "") if kind in ("string_too_short", "too_short") else None
