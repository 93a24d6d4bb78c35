"""The body of a small record: JSON with a format number and a token unique to this write.

The token settles a create whose answer was lost: the bytes read back are ours or another's.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, compress
from typing import Any

from hostler.errors import DamagedError, NewerFormatError
from hostler.spec.names import is_part

FORMAT = 1
HINT = "was it edited by hand?"
DEPTH = 100  # of tables in tables: code that walks through a record goes down with it
LARGEST = 2**63  # no whole number of a record is as large
LAST = 2.5e11  # seconds since 1970 that a calendar still has a year for

Record = dict[str, Any]
Field = tuple[frozenset[type], Callable[[Any], bool] | None]  # types of a value, and a test of it

_NONE = type(None)
_loads = json.JSONDecoder().decode
TEXT: Field = frozenset({str, _NONE}), None
PART: Field = frozenset({str, _NONE}), is_part  # a name that readers make a key of
NUMBER: Field = frozenset({int, float, _NONE}), lambda value: -LARGEST < value < LARGEST
WHOLE: Field = frozenset({int, _NONE}), lambda value: -LARGEST < value < LARGEST
MOMENT: Field = frozenset({int, float, _NONE}), lambda value: -LAST < value < LAST
TABLE: Field = frozenset({dict, _NONE}), None
ROWS: Field = frozenset({list, _NONE}), None

# Errors of code that takes stored bytes apart which nobody wrote so.
MISFITS = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    ArithmeticError,
    RecursionError,
    struct.error,
)


def encode(record: Record) -> bytes:
    stamped = {"format": FORMAT, "token": os.urandom(8).hex(), "at": round(time.time(), 3), **record}
    return json.dumps(stamped, separators=(",", ":"), allow_nan=True, default=str).encode()


def decode(data: bytes, key: str, newest: int = FORMAT) -> Record:
    """The record these bytes hold; the key is for the message only. `newest`: the format that is read."""
    record = parse(data, key)
    version = record.get("format", 0)
    if type(version) is not int:
        raise _damaged(key)
    if version > newest:
        raise NewerFormatError(
            f"{key} was written by a newer hostler (format {_short(version)}, this one reads {newest})",
            hint="upgrade: pip install -U hostler",
        )
    return record


def parse(data: bytes, key: str) -> Record:
    """The JSON object these bytes hold, of bounded depth."""
    try:
        record = _loads(data.decode())
    except (ValueError, RecursionError):
        raise _damaged(key) from None
    if type(record) is not dict or (data.count(b"{") + data.count(b"[") > DEPTH and _is_deep(record)):
        raise _damaged(key)
    return record


def checked(record: Record, fields: Mapping[str, Field], key: str, need: Iterable[str] = ()) -> Record:
    """The record, if each of these fields that it has is of its type, and those it needs are there;
    DamagedError otherwise."""
    for name, value in record.items():
        if name in fields:
            kinds, fits = fields[name]
            if type(value) not in kinds or (fits is not None and value is not None and not fits(value)):
                raise DamagedError(f"{key} is damaged: its {name} is not what hostler writes there", HINT)
    for name in need:
        if record.get(name) is None:
            raise DamagedError(f"{key} is damaged: it has no {name}", HINT)
    return record


def checked_rows(rows: Any, fields: Mapping[str, Field], key: str, need: Iterable[str] = ()) -> list[Record]:
    """A list of tables, each with fields of these types."""
    for row in rows if type(rows) is list else [None]:
        if type(row) is not dict:
            raise DamagedError(f"{key} is damaged: its rows are not what hostler writes there", HINT)
        checked(row, fields, key, need)
    return list(rows)


def check_numbers(table: Mapping[str, Any], key: str) -> None:
    """DamagedError unless all values are numbers that a float holds; NaN and infinities are."""
    for value in table.values():
        if type(value) is not float and (type(value) is not int or not -LARGEST < value < LARGEST):
            raise DamagedError(f"{key} is damaged: a value of a metric is not a number", HINT)


@contextmanager
def taken_apart(key: str) -> Iterator[None]:
    """Around code that reads a record's fields: bytes that hostler does not write are damage, and named."""
    try:
        yield
    except MISFITS:
        raise DamagedError(f"{key} is not what hostler writes there", HINT) from None


_TABLES = frozenset({dict, list})


def _is_deep(record: Record) -> bool:
    level: list[Any] = [record]
    for _ in range(DEPTH):
        values = [*chain.from_iterable(one.values() if type(one) is dict else one for one in level)]
        level = [
            *compress(values, map(_TABLES.__contains__, map(type, values)))
        ]  # all at once: they are many
        if not level:
            return False
    return True


def _damaged(key: str) -> DamagedError:
    return DamagedError(f"{key} is not a hostler record", HINT)


def _short(number: int) -> str:
    return str(number) if number < LARGEST else "unknown"
