"""Parameters of a run: nested tables to dotted keys and back, and `key=value` words of a command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hostler.errors import UsageError
from hostler.spec.scalars import parse_value

_PLAIN = frozenset({int, float, str, bool, type(None), list})  # sooner known than that it is no table


def flatten(params: Mapping[str, Any]) -> dict[str, Any]:
    """{'model': {'width': 3}} to {'model.width': 3}, in order; an empty table vanishes."""
    flat: dict[str, Any] = {}
    for key, value in params.items():
        if type(value) not in _PLAIN and isinstance(value, Mapping):
            flat.update({f"{key}.{inner}": v for inner, v in flatten(value).items()})
        else:
            flat[str(key)] = value
    return flat


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """{'model.width': 3} to {'model': {'width': 3}}."""
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *tables, last = key.split(".")
        inside = nested
        for name in tables:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise UsageError(f"{key}: {name} is a value already, not a table")
        if isinstance(inside.get(last), dict):
            raise UsageError(f"{key} is a table already, not a value")
        inside[last] = value
    return nested


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both, table by table; where they differ, the second."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def parse_pair(word: str) -> tuple[str, Any]:
    """'a.b=1' to ('a.b', 1)."""
    key, equals, value = word.partition("=")
    if not equals or not all(key.split(".")):
        raise UsageError(
            f"{word!r} is not a key=value", hint="for example lr=0.1, or model.width=64 for a nested key"
        )
    return key, parse_value(value)


def parse_pairs(words: Iterable[str]) -> dict[str, Any]:
    """['lr=0.1', 'model.width=64'] to {'lr': 0.1, 'model': {'width': 64}}; the last of one key counts."""
    return nest(dict(parse_pair(word) for word in words))
