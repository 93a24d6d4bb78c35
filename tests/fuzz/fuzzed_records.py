"""Records of a store that an enemy can write, by all that reads them in memory; requests to the board."""

from __future__ import annotations

import asyncio
import functools
import json
import string
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from fuzz_harness import Breach, Target, bent, damaged
from honest_store import fill
from hypothesis import strategies as st

from hostler import settings
from hostler.analysis.board import app
from hostler.analysis.board.guard import Guard
from hostler.analysis.board.watcher import Watcher
from hostler.errors import HostlerError
from hostler.records import garbage
from hostler.records.body import MISFITS
from hostler.records.checkpoint import archive, checkpoints
from hostler.records.launch import costs, launches
from hostler.records.packs.pack_format import (
    PackedObject,
    Where,
    check_objects,
    decode_chunk,
    encode_chunk,
)
from hostler.records.packs.packed_store import PackedStore
from hostler.records.packs.seals import PIECE, decode_seal, encode_seal
from hostler.records.rows import rows
from hostler.records.run import control, run_details
from hostler.records.series import metrics, packing, segments
from hostler.records.sweep import error_groups, summary, sweeps
from hostler.store.memory import MemoryStore

Edit = tuple[int, int, bytes]  # which object, how it is damaged, with what


@functools.lru_cache(maxsize=1)
def honest() -> dict[str, bytes]:
    """Objects of a store that real runs filled, once for each test process."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOSTLER_CACHE", f"{place}/cache")
        root = fill(Path(place) / "world")
        return {
            p.relative_to(root).as_posix(): p.read_bytes()
            for p in sorted(root.rglob("*"))
            if p.is_file() and not p.is_symlink() and p.stat().st_size < 100_000
        }


@st.composite
def _bent_line(draw: st.DrawFn, data: bytes) -> bytes:
    """JSON, or lines of which some are, where one value is another now."""
    lines = data.splitlines()
    place = draw(st.sampled_from([at for at, line in enumerate(lines) if line[:1] == b"{"]))
    lines[place] = json.dumps(draw(bent([json.loads(lines[place])])), default=str).encode()
    return b"\n".join(lines)


@st.composite
def enemy(draw: st.DrawFn) -> dict[str, bytes]:
    """Objects of the honest store that are others now, and some that nobody put there."""
    keys = sorted(honest())
    changed: dict[str, bytes] = {}
    for _ in range(draw(st.integers(1, 5))):
        key = draw(st.sampled_from(keys))
        data, how = honest()[key], draw(st.integers(0, 3))
        if how == 0:
            changed[key] = draw(damaged([data]))
        elif how == 1 and data[:1] == b"{":
            changed[key] = draw(_bent_line(data))
        elif how == 2:
            changed[key] = honest()[draw(st.sampled_from(keys))]
        else:
            name = draw(st.text(string.ascii_letters + string.digits + "-._²", min_size=1, max_size=20))
            changed[f"{key.rpartition('/')[0]}/{name}"] = data
    return changed


def _read_all(changed: dict[str, bytes], folder: Path) -> None:
    store = PackedStore(MemoryStore())
    for key, data in {**honest(), **changed}.items():
        store.inner.put(key, data)
    found = _tried(lambda: list(rows(store))) or []
    timing = settings.timing()
    terms = _tried(lambda: archive.terms(store))
    questions = [
        lambda: costs.spends(store, timing),
        lambda: launches.everywhere(store),
        lambda: garbage.find(store, 2e9, grace=0.0),
        lambda: list(error_groups.groups(list(error_groups.failed(store, found, everything=True)))),
        *((lambda: archive.entries(store, terms), lambda: archive.trend(store, terms)) if terms else ()),
    ]
    for row in found:
        questions += [
            functools.partial(run_details.read, store, row.key),
            functools.partial(control.state_of, store, row.key),
            functools.partial(metrics.read, store, row.id, 3),
            functools.partial(_restored, store, row.id, folder),
        ]
    for name in {row.sweep for row in found}:
        questions += [
            functools.partial(_summed, store, name, found),
            functools.partial(packing.read, store, name),
        ]
    for ask in questions:
        _tried(ask)


def _summed(store: PackedStore, name: str, found: list[Any]) -> None:
    job = sweeps.load(store, name)
    summary.ranked(job, [row for row in found if row.sweep == name])


def _restored(store: PackedStore, run: str, folder: Path) -> None:
    """Restored inside, or refused."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        target = Path(place) / "deep" / "target"
        target.parent.mkdir()
        try:
            checkpoints.restore_newest(store, run, target, before=10**6)
        finally:
            if {p.name for p in Path(place).iterdir()} != {"deep"}:
                raise Breach(f"{run} was restored outside its folder")


def _tried(ask: Any) -> Any:
    try:
        return ask()
    except HostlerError as error:
        if "\n" in error.message:
            raise Breach(f"not one line: {error.message[:300]!r}") from error
        return None


def _segment(data: bytes, folder: Path) -> None:
    segment = segments.decode(data, "sweeps/old/segments/000001")
    segment.check_facts("sweeps/old/segments/000001")
    segment.ends()
    segment.params()


ROWS = [
    Where(f"{n:07d}-a-abcde{n}", 2 + n, (2, 2 + n), n % 2 == 0, f"own-{n:06d}", 8 + 99 * n, 99)
    for n in range(4)
]
CHUNK = [
    *(
        PackedObject(f"sweeps/a/log/0000000-a-abcde0-{k:06d}.json", b"{}" * k, f'"{k}"', k / 8)
        for k in (1, 2)
    ),
    PackedObject("runs/0000000-a-abcde0/metrics/000001-0000-00000001", bytes(40), "e", 1e9),
]
IN_PIECES = encode_seal(
    "a", [Where(f"{n:07d}-a-abcdef", 2, (2,), True, "own-000000", 8 + n, 1) for n in range(PIECE + 1)]
)
SEALED = json.loads(zlib.decompress(encode_seal("a", ROWS, "s")[8:]))
HEADER = [[one.key, len(one.data), one.etag, one.modified] for one in CHUNK]
BODY = b"".join(one.data for one in CHUNK)


def _zlibbed(given: Any, before: bytes = b"", after: bytes = b"") -> bytes:
    """What packs hold: JSON, perhaps with its length before it, all as zlib."""
    text = json.dumps(given, default=str).encode() if not isinstance(given, bytes) else given
    return before + zlib.compress((struct.pack("<I", len(text)) if after else b"") + text + after)


def _seals() -> Any:
    good, head = encode_seal("a", ROWS, "s"), b"HSTL\x01\x00\x00\x00"
    inside = bent([SEALED]) | damaged([json.dumps(SEALED).encode()])
    return damaged([good, IN_PIECES]) | inside.map(lambda given: _zlibbed(given, head))


def _chunks() -> Any:
    inside = bent([HEADER]) | damaged([json.dumps(HEADER).encode()])
    return damaged([encode_chunk(CHUNK)]) | inside.map(lambda given: _zlibbed(given, after=BODY))


def _seal(data: bytes, folder: Path) -> None:
    """A seal that is read can be asked everything."""
    seal = decode_seal(data, "sweeps/a/sealed/000001", "a", 1, "stamp")
    for run, row in seal.rows.items():
        assert row.run == run and row.pack in seal.packs
    for prefix in ("sweeps/a/log/", "sweeps/a/ends/", "sweeps/a/log/0000001-"):
        keys = seal.log_keys(prefix, "")
        assert keys == sorted({*keys})


def _chunk(data: bytes, folder: Path) -> None:
    check_objects(decode_chunk(data, "sweeps/a/packs/own-000000"), "a", ROWS[0], "sweeps/a/packs/own-000000")


def believed(name: str, data: bytes, folder: Path) -> None:
    """A reader that checks nothing; what does not even unpack is no damage that a test wants."""
    try:
        plain = zlib.decompress(data[8:] if name == "seal" else data)
    except zlib.error:
        return
    if not _is_as_believed(name, plain):
        raise Breach("it was believed")


def _is_as_believed(name: str, plain: bytes) -> bool:
    try:
        if name == "seal":
            record = json.loads(plain)
            [range(head) for head in record["heads"]], [record["packs"][n] for n in record["pack"]]
        else:
            end = 4 + struct.unpack_from("<I", plain)[0]
            [plain[end : end + size] for _, size, _, _ in json.loads(plain[4:end])]
    except MISFITS:
        return False
    return True


GUARD = Guard("127.0.0.1", 80, "secret")
ADDRESSES = (
    *(f"/api/{what}?sweep=grid" for what in ("overview", "runs", "table", "errors", "search", "workers")),
    *(f"/api/{what}?sweep=grid&index=0-2&metric=loss" for what in ("curves", "points", "search", "compare")),
    *("/api/log?sweep=grid&index=0&search=e", "/api/log?sweep=grid&index=0&after=runs/x#00"),
    *("/api/file?sweep=grid&index=0&name=../x", "/api/code?sweep=grid&index=0-1", "/static/../x", "/"),
    *("/api/curves?sweep=grid&index=0&most=20", "/api/run?id=x&id=y", "/api/points?sweep=old&along=time"),
)
BODIES = (b'{"runs": ["x"]}', b'{"runs": [], "add": ["a"], "remove": []}', b'{"runs": ["%s"], "add": "x"}')


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    posts = draw(st.booleans())
    path = draw(st.sampled_from(["/api/stop", "/api/retry", "/api/tag"])) if posts else ""
    address = path or draw(damaged([one.encode() for one in ADDRESSES])).decode("latin-1")
    return {
        "method": "POST" if posts else draw(st.sampled_from(["GET", "GET", "GET", "HEAD", "PUT", "X"])),
        "address": address,
        "body": draw(damaged(list(BODIES))) if posts else b"",
        "host": draw(st.sampled_from([b"127.0.0.1:80", b"127.0.0.1:80", b"evil", b"\xff:80", b""])),
        "bearer": draw(st.sampled_from([b"Bearer secret", b"Bearer secret", b"Bearer \xff", b"x"])),
        "origin": draw(st.sampled_from([b"http://127.0.0.1:80", b"http://127.0.0.1:80", b"null", b"\xff"])),
    }


@functools.lru_cache(maxsize=1)
def _board() -> tuple[Any, Watcher]:
    store = PackedStore(MemoryStore())
    for key, data in honest().items():
        store.inner.put(key, data)
    watcher = Watcher(store, near=True)
    watcher.live.look()
    watcher.ready.set()
    return app.make(store, watcher, GUARD), watcher


def _request(asked: dict[str, Any], folder: Path) -> None:
    """Answered, and not as a failure of the server's."""
    path, _, query = asked["address"].partition("?")
    if path.startswith("/api/events"):
        return
    headers = [(b"host", asked["host"]), (b"authorization", asked["bearer"]), (b"origin", asked["origin"])]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": asked["method"],
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("latin-1", "replace"),
        "root_path": "",
        "query_string": query.encode("latin-1", "replace"),
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    said: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": asked["body"], "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            said.append(message["status"])

    asyncio.run(_board()[0](scope, receive, send))
    if not said or said[0] >= 500:
        raise Breach(f"answered {said}")


def _ready(strategy: Any) -> Any:
    """Filled before the bounds of a single example."""
    honest(), _board()
    return strategy


TARGETS = (
    Target("records", "records of a store, by all readers", lambda: _ready(enemy()), _read_all),
    Target(
        "segment",
        "segments",
        lambda: damaged([data for key, data in honest().items() if "/segments/" in key]),
        _segment,
    ),
    Target("seal", "seals of packed sweeps", _seals, _seal),
    Target("chunk", "what is packed of a run", _chunks, _chunk),
    Target(
        "board", "requests to the dashboard, past its door and before", lambda: _ready(requests()), _request
    ),
)
