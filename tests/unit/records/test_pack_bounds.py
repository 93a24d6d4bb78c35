"""Packs and seals that an enemy wrote take memory for their own bytes alone; what hostler writes is read."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.errors import DamagedError
from hostler.records import layout
from hostler.records.packs import pack_format, packed_store, packer, seals
from hostler.records.packs.pack_format import PackedObject, Spare, Where, decode_chunk, encode_chunk
from hostler.records.packs.packed_store import PackedStore
from hostler.records.packs.seals import Seal, decode_seal, encode_seal
from hostler.store.memory import MemoryStore
from packed_world import no_wait, submit, take

SEAL = b"HSTL\x01\x00\x00\x00"
NUMBERS = b'"heads":[2],"ends":[[2]],"whole":[1],"pack":[0],"start":[8],"size":[100]'
MB = 1 << 20


@contextmanager
def within(most: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def decoded(data: bytes, sweep: str = "a") -> Seal:
    return decode_seal(data, "key", sweep, 1, "stamp")


TEXTS = {  # repeated as often as the packed bytes allow, between a beginning and an end
    "lists": (b'{"runs":[', b"[],", b"[]]}"),
    "lists of numbers": (b'{"ends":[', b"[700,700],", b"[]]," + NUMBERS + b"}"),
    "numbers": (b'{"runs":[],"heads":[', b"700,", b"1]}"),
    "texts": (b'{"runs":[', b'"xy",', b'"xy"]}'),
    "escapes": (b'{"sweep":"', rb"\u1234", b'"}'),
    "wide letters": (b'{"sweep":"\xf0\x9f\x98\x80', b"x", b'"}'),
    "one name": (b'{"runs":[', b'"0000000-a-abcdef",', b'"x"],' + NUMBERS + b"}"),
    "tables": (b'{"runs":[', b"{},", b"{}]}"),
}


def bomb(text: str, size: int, ratio: int, before: Callable[[bytes], bytes] = bytes) -> bytes:
    """zlib, of `size` bytes with what follows it, that unpacks to `ratio` times as many."""
    begin, middle, end = TEXTS[text]
    plain = begin + middle * (size * ratio // len(middle)) + end
    return zlib.compress(before(plain), 9).ljust(size, b"\0")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("size", "ratio", "most"), [(12_000, 100, 20), (12_000, 800, 20), (300_000, 25, 60)])
def test_seal_of_much_takes_no_memory(text: str, size: int, ratio: int, most: int) -> None:
    data = SEAL + bomb(text, size, ratio)
    with within(most * MB), pytest.raises(DamagedError, match="key") as said:
        decoded(data)
    assert "\n" not in said.value.message


@pytest.mark.parametrize("text", TEXTS)
def test_chunk_of_much_takes_no_memory(text: str) -> None:
    data = bomb(text, 300_000, 25, lambda plain: struct.pack("<I", len(plain)) + plain)
    with within(60 * MB), pytest.raises(DamagedError):
        decode_chunk(data, "key")


@pytest.mark.parametrize("size", [100_000_000, 10**12, -1, 0.5, True])
def test_chunk_whose_objects_are_not_there_takes_no_memory(size: float) -> None:
    header = json.dumps([["k", size, "", 0]]).encode()
    for length in (len(header), 0, 0xFFFFFFFF):
        data = zlib.compress(struct.pack("<I", length) + header)
        with within(MB), pytest.raises(DamagedError):
            decode_chunk(data, "key")


def large(count: int, name: str, ends: int) -> list[Where]:
    """Rows of a sweep as packs have them, with hashes and sizes as they come."""
    luck, rows, at, pack = random.Random(1), list[Where](), 8, 1
    for index in range(count):
        run, size = f"{index:07d}-{name}-{luck.getrandbits(24):06x}", luck.randint(450, 500)
        numbers = tuple(range(2, 2 + 2 * ends, 2))
        rows.append(Where(run, 2 * ends, numbers, True, f"{7:016x}-{pack:06d}", at, size))
        at, pack = (8, pack + 1) if at > packer.BYTES else (at + size, pack)
    return rows


@pytest.mark.parametrize(
    ("count", "name", "ends"),
    [
        (10_000, "x" * 48, 1),
        (5000, "s", 20),
        (9, "s", 5000),
        pytest.param(100_000, "x" * 48, 1, marks=pytest.mark.soak),
    ],
)
def test_seal_of_a_large_sweep_is_read(count: int, name: str, ends: int) -> None:
    rows = large(count, name, ends)
    data = encode_seal(name, rows, "a" * 16)
    seal = decoded(data, name)
    assert seal.count == count and seal.row(rows[-1].run) == rows[-1]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 60),
    st.sampled_from(["s", "grid", "x" * 150]),
    st.sampled_from([1, 2, 40]),
    st.integers(0, 2**30),
)
def test_any_seal_of_hostlers_is_read(count: int, name: str, ends: int, seed: int) -> None:
    luck = random.Random(seed)
    rows = [
        row._replace(size=luck.randint(1, row.size), whole=luck.random() < 0.5)
        for row in large(count, name, ends)
    ]
    assert [*decoded(encode_seal(name, rows), name).rows.values()] == rows


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2**40), st.binary(max_size=40), st.booleans()), max_size=300))
def test_any_chunk_of_hostlers_is_read(given_objects: list[tuple[int, bytes, bool]]) -> None:
    rows = [
        PackedObject(f"runs/0000000-a-abcdef/logs/{n}", data * 500, f'"{n:x}"' if quoted else "e", n / 8)
        for n, data, quoted in {n: (n, data, quoted) for n, data, quoted in given_objects}.values()
    ]
    assert [*decode_chunk(encode_chunk(rows), "key").values()] == rows


def test_two_runs_in_one_place_are_damage() -> None:
    """Else a seal could have one chunk read, and written anew, for each of many runs."""
    first, second = large(2, "a", 1)
    assert decoded(encode_seal("a", [first, second])).count
    with pytest.raises(DamagedError):
        decoded(encode_seal("a", [first, second._replace(start=first.start)]))


def test_chunk_larger_than_any_is_not_asked_for() -> None:
    [row] = large(1, "a", 1)
    with pytest.raises(DamagedError):
        decoded(encode_seal("a", [row._replace(size=10**12)]))


FOREIGN = {
    "a checkpoint": lambda run: f"runs/{run}/checkpoints/000002-000000000001/COMMIT",
    "no key": lambda run: f"runs/{run}/logs/../../../x",
    "another run's": lambda run: "runs/0000009-s-abcdef/logs/000001-0001-00000001",
    "a later attempt's": lambda run: f"runs/{run}/logs/000009-0001-00000001",
}


def _packed() -> tuple[PackedStore, str, Where]:
    store = PackedStore(MemoryStore())
    job = submit(store, 2)
    for index in range(2):
        take(store, job, index).end("done", attempts=1, metrics={})
    packer.pack(store, job, no_wait)
    seal = store.look("s")
    assert seal is not None
    return store, job.run_id(0), seal.rows[job.run_id(0)]


@pytest.mark.parametrize("what", FOREIGN)
def test_chunk_with_what_no_pack_holds_is_damaged(what: str) -> None:
    store, run, row = _packed()
    name = FOREIGN[what](run)
    objects = {**store.packed(run), name: PackedObject(name, b"", "e", 1.0)}
    with pytest.raises(DamagedError, match="no pack may hold"):
        pack_format.check_objects(objects, "s", row, "key")


def test_chunk_without_an_entry_is_damaged() -> None:
    store, run, row = _packed()
    objects = dict(store.packed(run))
    del objects[layout.log_entry("s", run, 2)]
    with pytest.raises(DamagedError, match="lacks an entry"):
        pack_format.check_objects(objects, "s", row, "key")


def test_objects_of_few_large_runs_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    store = PackedStore(MemoryStore())
    monkeypatch.setattr(packed_store, "HELD", 100)
    for number in range(9):
        store._hold(("p", str(number)), {"k": PackedObject("k", bytes(60), "e", 1.0)})
    assert [name for _, name in store._chunks] == ["8"]


def test_sweep_that_no_reader_would_take_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    store = PackedStore(MemoryStore())
    job = submit(store, 3)
    for index in range(3):
        take(store, job, index).end("done", attempts=1, metrics={})
    before = [entry.key for entry in store.inner.list("")]
    monkeypatch.setattr(seals, "ENTRIES", -100)
    with pytest.raises(DamagedError):
        packer.pack(store, job, no_wait)
    assert [entry.key for entry in store.inner.list("")] == before
    monkeypatch.undo()
    monkeypatch.setattr(pack_format, "_SPARE", Spare(values=-10_000))
    assert packer.pack(store, job, no_wait).left == 3
