"""Installs zips of hostler and of what it needs: each is unpacked once, in a folder that its hash names.

Nothing is run from a folder that another user made or can write to. First programs carry this along, so it
uses the standard library and little else.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from hostler.env import cache_dir
from hostler.errors import DamagedError
from hostler.private import check_closed, closed_folder


def install_in_cache(kind: str, sha: str, fetch: Callable[[], bytes]) -> str:
    """As `install`, in the cache of this user, where nobody else can write to any level."""
    return install(closed_folder(cache_dir() / kind), sha, fetch)


def install(folder: Path, sha: str, fetch: Callable[[], bytes]) -> str:
    """Where the zip with this hash lies unpacked; `fetch` brings it if it is not there yet."""
    place = folder / sha
    if not place.is_dir():
        data = fetch()
        if hashlib.sha256(data).hexdigest() != sha:
            hint = "try again; if it comes from the store, remove it there"
            raise DamagedError(f"the zip {folder.name}/{sha} is damaged", hint)
        try:
            _unpack(data, place)
        except OSError as error:
            error.filename = error.filename or str(place)
            raise
    check_closed(place)
    return str(place)


def _unpack(data: bytes, place: Path) -> None:
    """Beside its place first, so that nobody finds half of it; another process that was faster has won."""
    fresh = place.with_name(f"{place.name}.{os.urandom(6).hex()}.tmp")
    try:
        fresh.mkdir(0o700)
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            packed.extractall(str(fresh))
        try:
            fresh.rename(place)
        except OSError:
            if not place.is_dir():
                raise
    finally:
        shutil.rmtree(str(fresh), ignore_errors=True)
