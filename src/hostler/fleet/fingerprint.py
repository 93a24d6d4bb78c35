"""By which two launches know that they have the same secrets, without a word of them.

Marks are made with a key that never leaves this machine: who reads one in the store can try out no value. A
secret that was changed has another mark, so that no machine that is there with the old one is given new runs.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path

from hostler.errors import MachineError

SIZE = 32


def marks(values: Mapping[str, str], folder: Path) -> list[str]:
    """One for each, in order of their names; `folder` is where the key is kept."""
    if not values:
        return []
    key = _key(folder / "fingerprints.key")
    return [f"{name}={_mark(key, name, value)}" for name, value in sorted(values.items())]


def _mark(key: bytes, name: str, value: str) -> str:
    text = f"{name}\0{value}".encode("utf-8", "surrogateescape")
    return hmac.new(key, text, hashlib.sha256).hexdigest()[:16]


def _key(path: Path) -> bytes:
    """The machine's, made when it is first needed: the first of several who make one wins."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        if not path.is_file():
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(os.urandom(SIZE))
            try:
                os.link(fresh, path)
            except FileExistsError:
                pass
            fresh.unlink()
        return path.read_bytes()
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}", "free space or rights there") from None
