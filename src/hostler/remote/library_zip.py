"""hostler as one zip: what a machine needs that has nothing but Python.

Equal sources give equal bytes on every machine (names sorted, times fixed, nothing compressed), so that its
hash names it. Left out is what only the submitter uses.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from functools import lru_cache
from pathlib import Path

import hostler
from hostler.frozen import dataclass

LEFT_OUT = frozenset({"cli", "testing", "drill", "emulators", "simulate", "__pycache__"})
MAIN = "__main__.py"  # what Python runs when it is given the zip
TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Parcel:
    sha: str
    data: bytes


def sha_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=1)
def parcel() -> Parcel:
    """The very hostler that asks."""
    root = Path(hostler.__file__).parent
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as packed:
        _add(packed, MAIN, (root / "remote" / "zip_main.py").read_bytes())
        for name in names:
            if not LEFT_OUT & set(name.split("/")):
                _add(packed, f"hostler/{name}", (root / name).read_bytes())
    data = target.getvalue()
    return Parcel(hashlib.sha256(data).hexdigest(), data)


def _add(packed: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, TIME)
    info.external_attr = 0o644 << 16
    packed.writestr(info, data)
