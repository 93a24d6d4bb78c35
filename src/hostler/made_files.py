"""Files that hostler made for people, reports, plots and tables: they are not part of a project's code.

They are known by size and hash, one line each in this user's cache: one that was renamed is still known, one
that a person has edited is theirs.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from hostler import env

NAME = "made-files"
MOST = 1 << 20  # bytes of lines; the older half is forgotten

Known = dict[int, set[str]]  # size → hashes


def mark(path: Path, cache: Path | None = None) -> None:
    """Note a file that was just written. Nothing depends on it but the next snapshot: no error."""
    with suppress(OSError):
        if path.is_file():  # /dev/stdout may be a pipe
            _note(path.stat().st_size, _hash(path), cache)


def mark_printed(text: str, stream: TextIO, cache: Path | None = None) -> None:
    """Note a text that was just printed, if a file holds it now: `hostler df > runs.csv`. A file that holds
    anything else besides is not known by it."""
    with suppress(OSError, ValueError):
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            data = text.encode(stream.encoding, stream.errors or "strict")
            _note(len(data), hashlib.sha256(data).hexdigest(), cache)


def _note(size: int, sha256: str, cache: Path | None) -> None:
    notes = (cache or env.cache_dir()) / NAME
    notes.parent.mkdir(parents=True, exist_ok=True)
    if notes.exists() and notes.stat().st_size > MOST:
        lines = notes.read_bytes().splitlines(keepends=True)
        fresh = notes.with_name(f"{NAME}.{os.getpid()}")
        fresh.write_bytes(b"".join(lines[len(lines) // 2 :]))
        fresh.replace(notes)
    with open(notes, "ab", buffering=0) as file:
        file.write(f"{size} {sha256}\n".encode())


def known(cache: Path | None = None) -> Known:
    found: Known = {}
    try:
        lines = ((cache or env.cache_dir()) / NAME).read_text().splitlines()
    except (OSError, ValueError):
        return {}
    for line in lines:
        size, _, sha256 = line.partition(" ")
        if size.isdecimal():
            found.setdefault(int(size), set()).add(sha256)
    return found


def holds(marks: Known, path: Path, size: int) -> bool:
    """Whether the file of this size is one of them; others are hardly ever read."""
    if size not in marks:
        return False
    try:
        return _hash(path) in marks[size]
    except OSError:
        return False


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
