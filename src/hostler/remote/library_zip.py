"""hostler as one zip: what a machine needs that has nothing but Python.

Equal sources give equal bytes on every machine (names sorted, times fixed, nothing compressed), so that its
hash names it. Left out is what only the submitter uses.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import hostler
from hostler.frozen import dataclass

LEFT_OUT = frozenset({"cli", "testing", "drill", "emulators", "simulate", "__pycache__"})
MAIN = "__main__.py"  # what Python runs when it is given the zip
TIME = (1980, 1, 1, 0, 0, 0)


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
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as packed:
        _add(packed, MAIN, (root / "remote" / "zip_main.py").read_bytes())
        for name in sorted(_names(str(root))):
            with open(f"{root}/{name}", "rb") as file:
                _add(packed, f"hostler/{name}", file.read())
    data = target.getvalue()
    return LibraryZip(hashlib.sha256(data).hexdigest(), data)


def _names(root: str) -> Iterator[str]:
    """The files that go along, from the folder of hostler on."""
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if name not in LEFT_OUT]
        inner = f"{folder[len(root) + 1 :]}/" if folder != root else ""
        yield from (inner + name for name in files if name.endswith(".py"))


def _add(packed: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, TIME)
    info.external_attr = 0o644 << 16
    packed.writestr(info, data)
