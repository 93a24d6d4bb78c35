"""Plain data, which JSON carries there and back: arguments and results of functions that run elsewhere.

Tuples become lists, and numbers of NumPy and torch become Python's. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEPEST = 50
_SHORT = {int, float, bool, type(None)}
_LARGEST = 10_000  # bits of a whole number; Python itself does not read much longer ones


def plain(value: Any, name: str, depth: int = 0) -> Any:
    """The value as JSON would bring it back; ValueError with the part that is not plain data."""
    if isinstance(value, int) and value.bit_length() > _LARGEST:
        raise ValueError(f"{name} is a number of more than {_LARGEST} bits")
    if isinstance(value, str) and not value.isascii():
        _check_letters(value, name)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth > _DEEPEST:
        raise ValueError(f"{name} is nested more than {_DEEPEST} deep")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{name} has the key {key!r}, which is not a text")
            _check_letters(key, name)
        return {key: plain(one, f"{name}[{key!r}]", depth + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, f"{name}[{n}]", depth + 1) for n, one in enumerate(value)]
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        return plain(value.item(), name, depth + 1)
    kind = type(value)
    also = "; its .tolist() is" if callable(getattr(value, "tolist", None)) else ""
    raise ValueError(f"{name} is a {kind.__module__}.{kind.__qualname__}, which is not plain data{also}")


def _check_letters(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} holds {text[error.start]!r}, which is half a letter") from None


def least_size(value: Any, enough: float) -> int:
    """Bytes that the value takes as JSON at least; not counted on once it is more than enough."""
    size, open_parts = 1, [iter((value,))]
    while open_parts and size <= enough:
        for part in open_parts[-1]:
            if type(part) in _SHORT:
                continue  # whatever holds it has counted a letter for it
            if isinstance(part, str):
                size += len(part) + 1
            elif isinstance(part, Mapping) and len(open_parts) <= _DEEPEST:
                size += max(1, 7 * len(part) - 1)  # `"": 1, ` each
                open_parts.append(iter(part.values()))
                break
            elif isinstance(part, (list, tuple)) and len(open_parts) <= _DEEPEST:
                size += max(1, 3 * len(part) - 1)  # `1, ` each
                open_parts.append(iter(part))
                break
            if size > enough:
                break
        else:
            open_parts.pop()
    return size
