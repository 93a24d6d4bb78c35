"""A tree as one tar file: equal trees give equal bytes, and so one name.

Names are sorted, times and owners are zero, of the mode only the x bit stays. Bytes are streamed.
A file that changes while it is read cannot break the archive: it is cut or padded to the size it had
when it was opened, and reported.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
from pathlib import Path
from typing import BinaryIO, cast

from hostler.fleet.snapshot.tree import FILE, FOLDER, Tree, TreeNode, shown
from hostler.frozen import dataclass

CHUNK = 1 << 20


@dataclass(frozen=True)
class PackedArchive:
    sha: str
    size: int
    disturbed: tuple[str, ...] = ()  # one line each: files that changed, went or could not be read


def pack(tree: Tree, target: Path, *, compress: bool) -> PackedArchive:
    """Write the tree into target (which must not exist) and say what its bytes hash to."""
    disturbed: list[str] = []
    with open(target, "xb") as file:
        sink = _Hashing(file)
        if compress:
            with gzip.GzipFile("", "wb", 6, cast("BinaryIO", sink), mtime=0) as zipped:
                _write(tree, cast("BinaryIO", zipped), disturbed)
        else:
            _write(tree, cast("BinaryIO", sink), disturbed)
    return PackedArchive(sink.digest.hexdigest(), sink.size, tuple(disturbed))


def hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class _Hashing:
    """A file that remembers the hash of what passed through it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _write(tree: Tree, sink: BinaryIO, disturbed: list[str]) -> None:
    # the GNU format keeps any bytes in names; the stream mode never seeks
    with tarfile.open(
        fileobj=sink, mode="w|", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as tar:
        for node in tree.nodes:
            if node.kind == FILE:
                _add_file(tar, tree, node, disturbed)
            else:
                tar.addfile(_info(node))


def _add_file(tar: tarfile.TarFile, tree: Tree, node: TreeNode, disturbed: list[str]) -> None:
    brought = tree.brought.get(node.name)
    try:
        # not through a link that took the file's place, nor waiting on a pipe that did
        handle = os.open(brought or tree.root / node.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        disturbed.append(f"{shown(node.name)}: {error.strerror}, left out")
        return
    with open(handle, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        tar.addfile(_info(node, size), cast("BinaryIO", _Exactly(file, size)))
        after = os.fstat(file.fileno())
    if brought is None and (
        (after.st_mtime_ns, after.st_ctime_ns, after.st_ino) != node.stamp or after.st_size != size
    ):
        disturbed.append(f"{shown(node.name)}: changed while it was read")


class _Exactly:
    """A file that has exactly `size` bytes: cut if it grew, padded with zeros if it shrank."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size

    def read(self, count: int) -> bytes:
        wanted = min(count, self._left)
        data = self._file.read(wanted).ljust(wanted, b"\0")
        self._left -= wanted
        return data


def _info(node: TreeNode, size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(node.name)
    info.size = size
    info.mode = 0o755 if node.executable or node.kind == FOLDER else 0o644
    if node.kind == FOLDER:
        info.type = tarfile.DIRTYPE
    elif node.kind != FILE:
        info.type, info.linkname = tarfile.SYMTYPE, node.target
    return info
