"""JSON text to plain values, with the line of every key and item; a key given twice is an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hostler.errors import SpecError

Path = tuple[str | int, ...]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:"\s]+', re.DOTALL)


def load(text: str, name: str) -> tuple[Any, dict[Path, int]]:
    """(value, lines); `name` is for messages."""
    text = text.removeprefix("\ufeff")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise SpecError(f"not JSON: {error.msg}", where=f"{name}:{error.lineno}") from None
    except RecursionError:
        raise SpecError("nested too deep", where=f"{name}:1") from None
    return value, _lines(text, name)


def _lines(text: str, name: str) -> dict[Path, int]:
    """Line of every key and item, by a walk over the tokens of text that is known to be JSON."""
    lines: dict[Path, int] = {}
    inside: list[str | int | None] = []  # the place in each open table (its key, None before it) or list
    for token, line in _tokens(text):
        if token in ("}", "]"):
            inside.pop()
        elif token == ",":
            inside[-1] = inside[-1] + 1 if isinstance(inside[-1], int) else None
        elif inside and inside[-1] is None and token != ":":
            inside[-1] = json.loads(token)
            path = _path(inside)
            if path in lines:
                raise SpecError(
                    f"{path[-1]!r} is given twice, first on line {lines[path]}", where=f"{name}:{line}"
                )
            lines[path] = line
        elif token != ":":
            lines.setdefault(_path(inside), line)
            if token in ("{", "["):
                inside.append(None if token == "{" else 0)
    return lines


def _path(inside: list[str | int | None]) -> Path:
    return tuple(place for place in inside if place is not None)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield match[0], line
