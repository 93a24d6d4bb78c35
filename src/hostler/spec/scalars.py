"""Turns a plain word into a value and back, by the scalar rules of YAML 1.2's core schema.

The single source of these rules: YAML files, `key=value` on the command line and the reading of a
script's own arguments all go through here. Only true and false are booleans (also True, TRUE …);
on, off, yes, no, 12:30 and dates are text; 1e-3 is a number; 0o17 is octal, 0x1f is hexadecimal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["null", "bool", "int", "float", "str"]

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INF = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\d.])(\d+)(e[-+])')  # texts, and numbers without a point
_DIGITS = 4000  # Python refuses to read longer whole numbers; they stay text
_BASES = {"0o": 8, "0x": 16}


def kind(word: str) -> Kind:
    """The type of an unquoted word."""
    if word in _NULL:
        return "null"
    if word in _BOOL:
        return "bool"
    if _INT.fullmatch(word):
        return "int" if len(word) <= _DIGITS else "str"
    if _FLOAT.fullmatch(word) or _INF.fullmatch(word) or word in _NAN:
        return "float"
    return "str"


def for_yaml(json_text: str) -> str:
    """The same JSON with 1e-05 as 1.0e-05: only that is a number for readers of YAML 1.1, as PyYAML."""
    return _TOKENS.sub(
        lambda found: f"{found[1]}.0{found[2]}" if found[1] else found[0],
        json_text,
    )


def scalar(word: str) -> bool | int | float | str | None:
    """The value of an unquoted word; the empty word is null."""
    what = kind(word)
    if what == "null":
        return None
    if what == "bool":
        return _BOOL[word]
    if what == "int":
        return int(word, _BASES.get(word[:2], 10))
    return float(word.replace(".", "", 1) if word[-1] in "fFnN" else word) if what == "float" else word


def parse_value(word: str) -> bool | int | float | str | None:
    """The value of a word from a command line; there the empty word is empty text."""
    return scalar(word) if word else ""


def text(value: Any) -> str:
    """How a value is written as one word of a command; lists and tables are written as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, Mapping):
        return json.dumps(dict(value), default=text, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return json.dumps(list(value), default=text, separators=(",", ":"), ensure_ascii=False)
    return str(value)
