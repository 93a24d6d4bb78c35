"""The store as the place of a launch's secrets: an object under a prefix that has rights of its own.

For machines that are told things which others may read, where nothing better is configured. It goes when the
launch is found gone (`records/launch/launches.py`), whoever finds that.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostler.errors import MachineError
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.launch import launches
from hostler.store import Store


@dataclass(frozen=True)
class ObjectVault:
    store: Store

    def place(self, launch: str, names: Sequence[str]) -> str:
        return f"store:{_key(launch)}"

    def put(self, launch: str, values: Mapping[str, str], until: float) -> None:
        self.store.put(_key(launch), encode({"secrets": dict(values)}))

    def remove(self, launch: str, names: Sequence[str]) -> None:
        self.store.delete(_key(launch))


def _key(launch: str) -> str:
    return layout.secrets(*(launches.named(launch) or (launch, 1)))


# By which two launches know that they have the same secrets, without a word of them.
#
# Marks are made with a key that never leaves this machine: who reads one in the store can try out no value.
# A secret that was changed has another mark, so that no machine that is there with the old one is given new
# runs.


SIZE = 32


def marks(values: Mapping[str, str], folder: Path) -> list[str]:
    """A mark for each secret, in order of their names; `folder` is where the key is kept."""
    if not values:
        return []
    key = _mark_key(folder / "fingerprints.key")
    return [f"{name}={_mark(key, name, value)}" for name, value in sorted(values.items())]


def _mark(key: bytes, name: str, value: str) -> str:
    text = f"{name}\0{value}".encode("utf-8", "surrogateescape")
    return hmac.new(key, text, hashlib.sha256).hexdigest()[:16]


def _mark_key(path: Path) -> bytes:
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
