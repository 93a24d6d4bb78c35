"""A sweep file as text that a person would write: one line a parameter, short tables on one line.

What it writes is read back as exactly the same values by YAML 1.2's core schema.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from hostler.spec import scalars

_PLAIN = re.compile(r"[A-Za-z_./$][\w./+=@%-]*( [\w./+=@%-]+)*|\d+[A-Za-z]{2,}")
_WIDTH = 100
_OTHER_YAML = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def to_yaml(table: Mapping[str, Any], indent: int = 0) -> str:
    """A table as block lines; what is short and inside it on one line."""
    lines = []
    for key, value in table.items():
        lines.append(_pair(str(key), value, indent))
    return "".join(lines)


def flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(k))}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(one) for one in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else _endless(value)
    return scalars.text(value)


def _pair(key: str, value: Any, indent: int) -> str:
    head = f"{' ' * indent}{_text(key)}:"
    line = f"{head} {flow(value)}\n"
    tables = isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)
    if isinstance(value, Mapping) and value and (indent == 0 or len(line) > _WIDTH):
        return f"{head}\n{to_yaml(value, indent + 2)}"
    if tables:
        return f"{head}\n" + "".join(_item(one, indent + 2) for one in value)
    return line


def _item(table: Mapping[str, Any], indent: int) -> str:
    line = f"{' ' * indent}- {flow(table)}\n"
    if len(line) <= _WIDTH or not table:
        return line
    inner = to_yaml(table, indent + 2)
    return f"{' ' * indent}- {inner[indent + 2 :]}"


def _text(text: str) -> str:
    plain = _PLAIN.fullmatch(text) and scalars.kind(text) == "str" and text.lower() not in _OTHER_YAML
    return text if plain else '"' + "".join(map(_character, text)) + '"'


def _character(one: str) -> str:
    if one in '"\\':
        return "\\" + one
    if one.isprintable():
        return one
    return f"\\x{ord(one):02x}" if ord(one) < 256 else f"\\U{ord(one):08x}"


def _endless(value: float) -> str:
    return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
