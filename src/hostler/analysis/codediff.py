"""Two code snapshots compared file by file, in memory: nothing of an archive is unpacked to disk."""

from __future__ import annotations

import difflib
import hashlib
import tarfile
import tempfile
from pathlib import Path

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.spec.job import Source
from hostler.store import NotFound, Store

LARGEST = 1_000_000  # bytes of a file whose text is compared


@dataclass(frozen=True)
class Change:
    name: str
    how: str  # added, removed, changed
    text: tuple[str, ...] = ()  # unified difference; empty for what is no text


@dataclass(frozen=True)
class _DiffedFile:
    mark: str  # equal marks are equal content
    data: bytes | None  # None: too large to compare as text


def compare(store: Store, one: Source, other: Source) -> list[Change]:
    """Changes from one's code to the other's; nothing where either is not a snapshot in the store."""
    if one.snapshot == other.snapshot or not one.snapshot or not other.snapshot:
        return []
    before, after = _files(store, one.snapshot), _files(store, other.snapshot)
    if before is None or after is None:
        return []
    names = sorted(before.keys() | after.keys())
    return [_change(n, before.get(n), after.get(n)) for n in names if not _same(before.get(n), after.get(n))]


def _same(one: _DiffedFile | None, other: _DiffedFile | None) -> bool:
    return one is not None and other is not None and one.mark == other.mark


def _change(name: str, one: _DiffedFile | None, other: _DiffedFile | None) -> Change:
    how = "added" if one is None else "removed" if other is None else "changed"
    before, after = _lines(one), _lines(other)
    if before is None or after is None:
        return Change(name, how)
    found = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
    return Change(name, how, tuple(found))


def _lines(file: _DiffedFile | None) -> list[str] | None:
    """Lines of a text; none of a file that is not there; None for what is not text."""
    if file is None:
        return []
    if file.data is None or b"\0" in file.data[:8000]:
        return None
    return file.data.decode("utf-8", "replace").splitlines()


def _files(store: Store, sha256: str) -> dict[str, _DiffedFile] | None:
    with tempfile.TemporaryDirectory(prefix="hostler-diff-") as folder:
        path = Path(folder) / "code.tar.gz"
        try:
            store.download(layout.code(sha256), path)
        except NotFound:  # removed since
            return None
        with tarfile.open(path, "r:gz", encoding="utf-8", errors="surrogateescape") as tar:
            return {shown(member.name): _read(tar, member) for member in tar if not member.isdir()}


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> _DiffedFile:
    if not member.isreg():
        return _DiffedFile(
            f"link {member.linkname}", f"→ {member.linkname}".encode("utf-8", "surrogateescape")
        )
    file = tar.extractfile(member)
    digest, kept = hashlib.sha256(), b""
    while file and (piece := file.read(1 << 20)):
        digest.update(piece)
        kept = kept + piece if member.size <= LARGEST else b""
    mark = f"{digest.hexdigest()} {member.mode & 0o100:o}"
    return _DiffedFile(mark, kept if member.size <= LARGEST else None)


def shown(name: str) -> str:
    """A name that can be printed, whatever bytes it has."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
