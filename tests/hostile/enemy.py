"""Deeds of an enemy against a store: hypothesis draws them, and a test can name them.

Texts may hold {canary} and {home}, which become the paths of the ground: names that lead out lead there.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from arena import Ground, a_socket
from honest_store import DUE, SHOWN
from hypothesis import strategies as st
from record_forms import closed, opened

OUTSIDE = (
    "{canary}/file",
    "{home}/.bashrc",
    "../canary/file",
    "../../canary/file",
    "../../../canary/file",
    "../../../../home/.bashrc",
    "{canary}",
    "{home}",
)
TEXTS = (
    *OUTSIDE,
    "",
    ".",
    "..",
    "/",
    "a\0b",
    "a\nb",
    "\x1b]0;owned\x07\x1b[2J",
    "x" * 100_000,
    "\ud800",
    "-rf",
    "{0}{x!r}%s%n",
    "²",
    "٣",
    "NaN",
    "1e999",
    "<script>",
)
NUMBERS = (
    0,
    -1,
    1,
    0.5,
    1e308,
    -1e308,
    float("inf"),
    float("nan"),
    2**31,
    2**63,
    -(2**63),
    10**12,
    10**30,
    10**400,
)


def nested(depth: int, kind: type = list) -> Any:
    """A value as deep as JSON's writer takes it."""
    value: Any = 0
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    *NUMBERS,
    *TEXTS,
    [],
    {},
    [None],
    [[]],
    {"": None},
    {"a": {"b": [1, "x", None]}},
    [1, "x", {}],
    list(range(1000)),
    nested(300),
    nested(300, dict),
)
RAW: dict[str, bytes] = {
    "nothing": b"",
    "deep lists": b"[" * 200_000,
    "deep objects": b'{"a":' * 100_000,
    "deep and closed": b"[" * 50_000 + b"]" * 50_000,
    "deep in a field": b'{"format":1,"kind":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "null": b"null",
    "a list": b"[1]",
    "a number": b"7",
    "a text": b'"text"',
    "not a number": b"NaN",
    "no field": b"{}",
    "format alone": b'{"format":1}',
    "newer": b'{"format":99}',
    "endless format": b'{"format":1e999}',
    "long number": b'{"format":1,"at":' + b"9" * 10_000 + b"}",
    "not text": b"\xff\xfe\x00\x80",
    "half a record": b'{"format":1,"kind":"cl',
    "lone surrogate": b'{"format":1,"kind":"\\ud800"}',
    "a megabyte": b'{"format":1,"kind":"' + b"x" * (1 << 20) + b'"}',
    "escapes": b"\x1b]0;owned\x07\x1b[2J\x9b31m\n",
    "segment of nothing": b"HSTS" + struct.pack("<HHI", 1, 0, 2) + b"{}",
    "segment of much": b"HSTS" + struct.pack("<HHI", 1, 0, 0xFFFFFFFF) + b"{}",
    "fragment of nothing": b"HSTM" + struct.pack("<HI", 1, 2) + b"{}",
    "fragment of much": b"HSTM" + struct.pack("<HI", 1, 0xFFFFFFFF) + b"{}",
    "seal of nothing": b"HSTL" + struct.pack("<HH", 1, 0),
    "seal of much": b"HSTL"
    + struct.pack("<HH", 1, 0)
    + zlib.compress(b'{"runs":[' + b"[]," * 4_000_000 + b"[]]}", 9),
    "seal within its bounds": b"HSTL"
    + struct.pack("<HH", 1, 0)
    + zlib.compress(b'{"runs":[' + b"[]," * 2_500_000 + b"[]]}", 9).ljust(300_000, b"\0"),
    "pack of zeros": b"HSTP" + struct.pack("<HH", 1, 0) + bytes(1 << 20),
    "pack of much": b"HSTP"
    + struct.pack("<HH", 1, 0)
    + zlib.compress(struct.pack("<I", 12_000_003) + b"[" + b"[]," * 4_000_000 + b"[]]", 9),
}
NAMES = (
    "x",
    "000001",
    "000001.json",
    "000002.json",
    "999999.json",
    "9" * 30 + ".json",
    "9" * 30,
    "-1.json",
    "+00001.json",
    "0x1.json",
    "²²²²²²²-x-²²²²²².json",
    "0000000-grid-x-²²²²²².json",
    "0000000-grid-abcdef-000003.json",
    "0000000-grid-abcdef-" + "9" * 30 + ".json",
    "9999999-grid-abcdef-000001.json",
    "1-2",
    "1-2-3",
    "1-2-3-4",
    "²-²-²",
    "COMMIT",
    "two words",
    "line\nfeed",
    "\x1b[2J",
    "ü",
    "\udcff\udcfe",
    ".hidden",
    ".tmp-0123456789abcdef",
    "COMMIT/COMMIT",
    "log/x",
    "a/b/c/d/e/f",
    "000001-000000000001/COMMIT",
    "²-²/COMMIT",
    "x-y/COMMIT",
    "x" * 200,
)
GONE = st.sampled_from([False] * 5 + [True])
KINDS = (
    "fifo",
    "socket",
    "folder",
    "full folder",
    "link to a file",
    "link to a folder",
    "dangling",
    "loop",
    "zero",
)


class Deed(Protocol):
    """One change of a store. `key` says where, with '/' at the end if it is a folder."""

    key: str

    def do(self, ground: Ground) -> None: ...


@dataclass(frozen=True)
class Replace:
    """Other bytes under a key."""

    key: str
    data: bytes = field(repr=False)
    name: str = ""

    def do(self, ground: Ground) -> None:
        _put(ground, self.key, self.data)


@dataclass(frozen=True)
class Cut:
    """The first part of what was there."""

    key: str
    share: float

    def do(self, ground: Ground) -> None:
        data = _get(ground, self.key)
        _put(ground, self.key, data[: int(len(data) * self.share)])


@dataclass(frozen=True)
class Flip:
    """A byte that is another."""

    key: str
    share: float
    mask: int

    def do(self, ground: Ground) -> None:
        data = bytearray(_get(ground, self.key))
        if data:
            data[min(len(data) - 1, int(len(data) * self.share))] ^= self.mask
        _put(ground, self.key, bytes(data))


@dataclass(frozen=True)
class Delete:
    key: str

    def do(self, ground: Ground) -> None:
        _clear(ground.store / self.key)


@dataclass(frozen=True)
class Node:
    """A field of a record, of a seal, or of the header of a segment, fragment or pack, that is another; or is
    gone."""

    key: str
    path: tuple[str | int, ...]
    value: Any
    gone: bool = False

    def do(self, ground: Ground) -> None:
        data = _get(ground, self.key)
        head, record, tail = opened(data)
        if record is None:
            return
        value = _filled(self.value, ground)
        if self.path:
            at = record
            try:
                for step in self.path[:-1]:
                    at = at[step]
                if self.gone:
                    del at[self.path[-1]]
                else:
                    at[self.path[-1]] = value
            except (KeyError, IndexError, TypeError):
                return  # another deed was faster
        else:
            record = value
        _put(ground, self.key, closed(head, record, tail))

    def __repr__(self) -> str:
        value = "gone" if self.gone else repr(self.value)[:60]
        return f"Node({self.key!r}, {self.path!r}, {value})"


@dataclass(frozen=True)
class Stray:
    """A file that nobody wrote: a copy of another, or bytes."""

    key: str
    data: bytes | str = field(repr=False)  # or the key of what it copies

    def do(self, ground: Ground) -> None:
        data = _get(ground, self.data) if isinstance(self.data, str) else self.data
        _put(ground, self.key, data)


@dataclass(frozen=True)
class Special:
    """No file under a key, or in place of a folder."""

    key: str
    kind: str

    def do(self, ground: Ground) -> None:
        path = ground.store / self.key.rstrip("/")
        _clear(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _MAKE[self.kind](path, ground)
        except OSError:
            return  # below a deed that was faster


@dataclass(frozen=True)
class Rows:
    """Files that a COMMIT names besides its own, before or after these. Contents and hashes are right."""

    key: str
    rows: tuple[tuple[tuple[str, Any], ...], ...]
    first: bool = False

    def do(self, ground: Ground) -> None:
        _, record, _ = opened(_get(ground, self.key))
        if not isinstance(record, dict) or not isinstance(record.get("files"), list):
            return
        folder = self.key.removesuffix("COMMIT")
        rows = [{**_row(ground, f"{folder}files/"), **dict(row)} for row in self.rows]
        rows = [_filled(row, ground) for row in rows]
        record["files"] = [*rows, *record["files"]] if self.first else [*record["files"], *rows]
        _put(ground, self.key, json.dumps(record).encode())

    def __repr__(self) -> str:
        return f"Rows({self.key!r}, {[dict(row) for row in self.rows]!r})"


@dataclass(frozen=True)
class Points:
    """A fragment whose packed points are these records: (length or None for the right one, type, payload)."""

    key: str
    records: tuple[tuple[int | None, int, bytes], ...]

    def do(self, ground: Ground) -> None:
        header, _, _ = opened(_get(ground, self.key))
        body = b"".join(
            struct.pack("<IB", len(payload) if length is None else length, kind) + payload
            for length, kind, payload in self.records
        )
        _, record, _ = opened(_get(ground, self.key))
        if header == b"HSTM":
            _put(ground, self.key, closed(header, record, body))


@dataclass(frozen=True)
class Code:
    """An archive in place of the code, named by its own hash, that every sweep but the good ones runs."""

    key: str  # of a spec
    kind: str  # bomb | many | names

    def do(self, ground: Ground) -> None:
        data = _ARCHIVES[self.kind](ground)
        sha = hashlib.sha256(data).hexdigest()
        _put(ground, f"code/{sha}", data)
        _put(ground, f"code/{sha}.json", b'{"format":1,"files":1,"size":1}')
        Node(self.key, ("source", "snapshot"), sha).do(ground)


def keys(store: Path) -> list[str]:
    """Every key that an enemy may touch: all but the two good sweeps', and what those need."""
    every = sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.is_file())
    return [
        key
        for key in every
        if not any(f"{name}" in key for name in (f"-{SHOWN}-", f"-{DUE}-", f"/{SHOWN}/", f"/{DUE}/"))
    ]


def needed(key: str) -> bool:
    """Whether the good sweeps need it as well: what all share, and every folder above them. No worker runs
    anything where it cannot beat."""
    above = ("", "sweeps/", "runs/", "archive/", "code/", "alive/")
    return key.startswith(("project/", "code/")) or key in above


def any_deed(store: Path) -> st.SearchStrategy[Deed]:
    """Deeds against a store like this one."""
    objects = keys(store)
    folders = sorted({f"{os.path.dirname(key)}/" for key in objects} | {"", "sweeps/", "runs/", "alive/"})
    above = sorted({f"{part}/" for key in objects for part in _parents(key)} - {"sweeps/", "runs/"})
    records = [key for key in objects if opened((store / key).read_bytes())[1] is not None]
    nodes = {key: list(_paths(opened((store / key).read_bytes())[1])) for key in records}
    commits = [key for key in objects if key.endswith("/COMMIT")]
    fragments = [key for key in objects if "/metrics/" in key]
    key, share = st.sampled_from(objects), st.floats(0, 1)
    raw = st.sampled_from([*RAW.values()]) | st.binary(max_size=300)
    odd = st.sampled_from(ODD) | st.text(max_size=20) | st.integers() | st.floats()
    name = st.sampled_from(NAMES) | st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=40)
    node = st.sampled_from(records).flatmap(
        lambda one: st.builds(Node, st.just(one), st.sampled_from(nodes[one]), odd, GONE)
    )
    row = st.dictionaries(
        st.sampled_from(["name", "link", "mode", "parts", "size", "n", "at", "sha256", "mtime"]),
        st.sampled_from(
            [*OUTSIDE, "model", "newest", "newest/x", "model/weights.bin/x", "a", "a/b", *ODD, 0o6777, 0o777]
        ),
        min_size=1,
        max_size=4,
    ).map(lambda found: tuple(sorted(found.items())))
    record = st.tuples(
        st.none() | st.sampled_from([0, 1, 0xFFFFFFFF]), st.integers(0, 6), st.binary(max_size=60)
    )
    return st.one_of(
        node,
        node,
        node,
        st.builds(Replace, key, raw),
        st.builds(Cut, key, share),
        st.builds(Flip, key, share, st.integers(1, 255)),
        st.builds(Delete, key),
        st.builds(Stray, st.builds(str.__add__, st.sampled_from(folders), name), raw | key),
        st.builds(Special, key | st.sampled_from(above), st.sampled_from(KINDS)),
        st.builds(
            Rows, st.sampled_from(commits), st.lists(row, min_size=1, max_size=3).map(tuple), st.booleans()
        ),
        st.builds(Points, st.sampled_from(fragments), st.lists(record, max_size=8).map(tuple)),
    )


def _paths(record: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where the nodes of a record are."""
    yield above
    inner: Sequence[tuple[str | int, Any]] = ()
    if isinstance(record, dict):
        inner = list(record.items())
    elif isinstance(record, list):
        inner = list(enumerate(record[:20]))
    for step, value in inner:
        yield from _paths(value, (*above, step))


def _parents(key: str) -> Iterator[str]:
    parts = key.split("/")[:-1]
    return ("/".join(parts[:n]) for n in range(1, len(parts) + 1))


def _filled(value: Any, ground: Ground) -> Any:
    """A value with the ground's own paths in its texts."""
    if isinstance(value, str):
        return value.replace("{canary}", str(ground.canary)).replace("{home}", str(ground.home))
    if isinstance(value, dict):
        return {name: _filled(one, ground) for name, one in value.items()} if len(value) > 1 else value
    return value


def _row(ground: Ground, folder: str) -> dict[str, Any]:
    """A row of a COMMIT for a file that is there."""
    data = b"echo owned\n"
    _put(ground, f"{folder}000090", data)
    sha = hashlib.sha256(data).hexdigest()
    return {"name": "added", "size": len(data), "mode": 0o644, "link": "", "n": 90, "sha256": sha, "parts": 1}


def _get(ground: Ground, key: str) -> bytes:
    path = ground.store / key
    return path.read_bytes() if path.is_file() and ground.store in path.resolve().parents else b""


def _put(ground: Ground, key: str, data: bytes) -> None:
    """Write a file of the store, whatever is there; not through links that another deed made."""
    path = ground.store / key
    try:
        if not path.parent.resolve().is_relative_to(ground.store.resolve()):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear(path)
        path.write_bytes(data)
    except (OSError, ValueError, RuntimeError):
        return  # a name that no folder holds


def _clear(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        return


def _full_folder(path: Path, ground: Ground) -> None:
    path.mkdir()
    (path / "000001.json").write_bytes(b"{}")


_MAKE: dict[str, Callable[[Path, Ground], None]] = {
    "fifo": lambda path, ground: os.mkfifo(path),
    "socket": lambda path, ground: a_socket(path),
    "folder": lambda path, ground: path.mkdir(),
    "full folder": _full_folder,
    "link to a file": lambda path, ground: path.symlink_to(ground.canary / "file"),
    "link to a folder": lambda path, ground: path.symlink_to(ground.canary),
    "dangling": lambda path, ground: path.symlink_to(ground.canary / "new"),
    "loop": lambda path, ground: path.symlink_to(path),
    "zero": lambda path, ground: path.symlink_to("/dev/zero"),
}


def _archive(members: Sequence[tuple[str, int, str]]) -> bytes:
    """A tar.gz of (name, size, link) members; of zeros, which pack well."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as archive:
        for name, size, link in members:
            row = tarfile.TarInfo(name)
            row.size, row.mode = size, 0o6777
            if link:
                row.type, row.linkname = tarfile.SYMTYPE, link
            archive.addfile(row, None if link else io.BytesIO(bytes(size)))
    return made.getvalue()


_ARCHIVES: dict[str, Callable[[Ground], bytes]] = {
    "bomb": lambda ground: _archive([(f"zeros-{n}", 100 << 20, "") for n in range(8)]),
    "many": lambda ground: _archive([(f"file-{n}", 0, "") for n in range(100_000)]),
    "names": lambda ground: _archive(
        [
            ("a", 0, str(ground.canary)),
            ("a/owned", 1, ""),
            ("../../owned", 1, ""),
            (f"{ground.home}/.bashrc", 1, ""),
        ]
    ),
}
