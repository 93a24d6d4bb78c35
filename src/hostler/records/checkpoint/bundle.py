"""Small files in one object, one after the other: `at` in a file's row says where it begins.

Where a hundred runs of one process end together, an object for each file would be most of the work. A record
with such rows has format 2: a hostler that knows no bundles says "upgrade".
"""

from __future__ import annotations

from pathlib import Path

from hostler.records.body import Record

FORMAT = 2  # of a record with rows that have `at`
SMALL = 64 << 10  # bytes of a file that goes into one, at most
MOST = 4 << 20  # bytes of a bundle


class Bundle:
    def __init__(self) -> None:
        self._data = bytearray()
        self.has_files = False  # perhaps empty ones alone

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    def read(self, path: Path) -> bytes | None:
        """The bytes of a file that may go along; None if it is too large."""
        if path.stat().st_size > SMALL:
            return None
        data = path.read_bytes()
        return data if len(data) <= SMALL and len(self._data) + len(data) <= MOST else None

    def add(self, data: bytes) -> int:
        """Where they begin."""
        at, self.has_files = len(self._data), True
        self._data += data
        return at


def format_of(rows: list[Record]) -> Record:
    """The `format` of a record with these rows, where it is not the usual one."""
    return {"format": FORMAT} if any("at" in row for row in rows) else {}
