"""The body of a small record: JSON with a format number and a token unique to this write.

The token is what settles a create whose answer was lost: the bytes read back are ours or another's.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hostler.errors import DamagedError, NewerFormatError

FORMAT = 1

Record = dict[str, Any]


def encode(record: Record) -> bytes:
    stamped = {"format": FORMAT, "token": os.urandom(8).hex(), "at": round(time.time(), 3), **record}
    return json.dumps(stamped, separators=(",", ":"), allow_nan=True, default=str).encode()


def decode(data: bytes, key: str) -> Record:
    """The record these bytes hold; the key is for the message only."""
    try:
        record: Record = json.loads(data.decode())
        version = int(record.get("format", 0))
    except (ValueError, AttributeError, TypeError):
        raise DamagedError(f"{key} is not a hostler record", hint="was it edited by hand?") from None
    if version > FORMAT:
        raise NewerFormatError(
            f"{key} was written by a newer hostler (format {version}, this one reads {FORMAT})",
            hint="upgrade: pip install -U hostler",
        )
    return record


@contextmanager
def taken_apart(key: str) -> Iterator[None]:
    """Around what reads a record's fields: JSON that is none of hostler's is damage, and has a name."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise DamagedError(f"{key} is not what hostler writes there", hint="was it edited by hand?") from None
