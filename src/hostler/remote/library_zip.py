"""hostler as one zip: what a machine needs that has nothing but Python.

Equal sources give equal bytes on every machine (names sorted, times fixed, nothing compressed), so that its
hash names it. Left out is what only the submitter uses. It is written here, without `zipfile`: every
submission packs several hundred small files, and waits.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import hostler
from hostler.frozen import dataclass

LEFT_OUT = frozenset({"cli", "testing", "drill", "emulators", "simulate", "__pycache__"})
MAIN = "__main__.py"  # what Python runs when it is given the zip
TIME = (1980, 1, 1, 0, 0, 0)
_HEAD = struct.Struct("<4s5H3L2H")  # before each file
_ROW = struct.Struct("<4s6H3L5H2L")  # of each, at the end
_END = struct.Struct("<4s4H2LH")
_VERSION, _UNIX, _DATE, _MODE = 20, 3 << 8, 1 << 5 | 1, 0o644 << 16


@dataclass(frozen=True)
class LibraryZip:
    sha: str
    data: bytes


def sha_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=1)
def own_zip() -> LibraryZip:
    """The very hostler that asks."""
    root = Path(hostler.__file__).parent
    data = _packed(_files(root))
    return LibraryZip(sha_of(data), data)


def _files(root: Path) -> Iterator[tuple[str, bytes]]:
    yield MAIN, (root / "remote" / "zip_main.py").read_bytes()
    for name in sorted(_names(str(root))):
        with open(f"{root}/{name}", "rb", buffering=0) as file:
            yield f"hostler/{name}", file.read()


def _names(root: str) -> Iterator[str]:
    """The files that go along, from the folder of hostler on."""
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if name not in LEFT_OUT]
        inner = f"{folder[len(root) + 1 :]}/" if folder != root else ""
        yield from (inner + name for name in files if name.endswith(".py"))


def _packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip of them, as `zipfile` would write it: nothing compressed, all of the same time."""
    pieces, rows, at = list[bytes](), list[bytes](), 0
    for name, data in files:
        word, check = name.encode("ascii"), zlib.crc32(data)
        facts = (_VERSION, 0, 0, 0, _DATE, check, len(data), len(data), len(word), 0)
        pieces += (_HEAD.pack(b"PK\3\4", *facts), word, data)
        rows += (_ROW.pack(b"PK\1\2", _UNIX | _VERSION, *facts, 0, 0, 0, _MODE, at), word)
        at += _HEAD.size + len(word) + len(data)
    directory = b"".join(rows)
    count = len(rows) // 2
    end = _END.pack(b"PK\5\6", 0, 0, count, count, len(directory), at, 0)
    return b"".join([*pieces, directory, end])
