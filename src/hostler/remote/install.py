"""Installs zips of hostler and of what it needs: each is unpacked once, in a folder that its hash names.

Nothing is run from a folder that another user made or can write to. First programs carry this along, so it
uses the standard library and little else.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from hostler.env import cache_dir
from hostler.errors import DamagedError
from hostler.private import check_closed, closed_folder

LARGEST_CODE = 16 << 20  # bytes of a module's code
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def install_in_cache(
    kind: str, sha: str, fetch: Callable[[], bytes], compiled: Callable[[], bytes] = bytes
) -> str:
    """As `install`, in the cache of this user, where nobody else can write to any level."""
    return install(closed_folder(cache_dir() / kind), sha, fetch, compiled)


def install(folder: Path, sha: str, fetch: Callable[[], bytes], compiled: Callable[[], bytes] = bytes) -> str:
    """Where the zip with this hash lies unpacked; `fetch` brings it if it is not there yet, and `compiled` a
    zip with its bytecode, if there is one (`bytecode.py`)."""
    place = folder / sha
    if not place.is_dir():
        data = fetch()
        if hashlib.sha256(data).hexdigest() != sha:
            hint = "try again; if it comes from the store, remove it there"
            raise DamagedError(f"the zip {folder.name}/{sha} is damaged", hint)
        try:
            _unpack(data, place, compiled())
        except OSError as error:
            error.filename = error.filename or str(place)
            raise
    check_closed(place)
    return str(place)


def _unpack(data: bytes, place: Path, compiled: bytes) -> None:
    """Beside its place first, so that nobody finds half of it; another process that was faster has won."""
    fresh = place.with_name(f"{place.name}.{os.urandom(6).hex()}.tmp")
    try:
        fresh.mkdir(0o700)
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            packed.extractall(str(fresh))
            _add_bytecode(compiled, packed.namelist(), fresh)
        try:
            fresh.rename(place)
        except OSError:
            if not place.is_dir():
                raise
    finally:
        shutil.rmtree(str(fresh), ignore_errors=True)


def _add_bytecode(compiled: bytes, sources: list[str], place: Path) -> None:
    """Only what belongs to a source that is there, each whole and of its checksum: Python believes it, and
    compiles where there is none, so damage is no error."""
    for name, code in _codes(compiled, sources):
        path = place / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(code)


def _codes(compiled: bytes, sources: list[str]) -> Iterator[tuple[str, bytes]]:
    mark = f".{sys.implementation.cache_tag}.pyc"
    try:
        with zipfile.ZipFile(io.BytesIO(compiled)) as packed:
            entries = {entry.filename: entry for entry in packed.infolist()}
            for source in sources:
                folder, _, name = source.rpartition("/")
                entry = entries.get(f"{folder}/__pycache__/{name[: -len('.py')]}{mark}")
                if entry and entry.file_size <= LARGEST_CODE and entry.compress_type in PACKED:
                    yield entry.filename, packed.read(entry)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, struct.error):
        return  # RuntimeError: it wants a password
