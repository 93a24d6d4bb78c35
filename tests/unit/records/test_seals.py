"""Seals in pieces: one run is found by few bytes, what an enemy wrote is damage, an older seal is read."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from hostler.errors import DamagedError
from hostler.records import layout
from hostler.records.packs import seals
from hostler.records.packs.covered_keys import RecordPlace
from hostler.records.packs.pack_format import Where
from hostler.records.packs.packed_store import PackedStore
from hostler.records.packs.seals import PIECE, Seal, decode_seal, encode_seal, open_seal
from hostler.store import NotFound
from hostler.store.memory import MemoryStore
from packed_world import submit

COUNT = 2 * PIECE + 500
SIZE = 100
BEGIN = 12  # bytes before the head


def rows_of(count: int) -> list[Where]:
    return [
        Where(f"{n:07d}-s-{n * 7919 % 2**24:06x}", 2, (2,), True, "own-000001", 8 + SIZE * n, SIZE)
        for n in range(count)
    ]


ROWS = rows_of(COUNT)
SEALED = encode_seal("s", ROWS, "one")


def opened(data: bytes, read: list[tuple[int, int]] | None = None) -> Seal:
    def bytes_of(start: int, end: int) -> bytes:
        if read is not None:
            read.append((start, min(end, len(data))))
        return data[start:end]

    return open_seal(bytes_of, len(data), "key", "s", 1, "stamp")


@pytest.mark.parametrize("count", [0, 1, PIECE, PIECE + 1, COUNT])
def test_seal_of_any_number_of_pieces_is_read_back(count: int) -> None:
    seal = decode_seal(encode_seal("s", ROWS[:count], "one"), "key", "s", 1, "stamp")
    assert [*seal.rows.values()] == ROWS[:count]
    assert (seal.count, seal.submission, seal.number) == (count, "one", 1)
    keys = seal.log_keys(layout.ends("s"), "")
    assert keys == [layout.end("s", row.run, 2) for row in ROWS[:count]]


def test_run_is_found_by_the_head_and_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "AT_ONCE", 1000)
    for row in (ROWS[0], ROWS[PIECE - 1], ROWS[PIECE], ROWS[-1]):
        read: list[tuple[int, int]] = []
        seal = opened(SEALED, read)
        assert seal.row(row.run) == row
        assert seal.covers(RecordPlace("s", row.run, 2, True))
        assert seal.log_keys(layout.log_entry("s", row.run, 1)[:-11], "") == [
            layout.log_entry("s", row.run, k) for k in (1, 2)
        ]
        assert len(read) == 2 and sum(end - start for start, end in read) < len(SEALED) / 2
        assert seal.row("0000000-s-!") is None and seal.row("x") is None and seal.row("") is None


def test_who_asks_for_many_pieces_gets_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "AT_ONCE", 1000)
    monkeypatch.setattr(seals, "ALONE", 1)
    read: list[tuple[int, int]] = []
    seal = opened(SEALED, read)
    keys = seal.log_keys(layout.logs_of("s"), "")
    assert keys == [layout.log_entry("s", row.run, k) for row in ROWS for k in (1, 2)]
    assert len(read) == 3 and read[-1][1] == len(SEALED)


@pytest.mark.parametrize("at", [0, PIECE - 1, PIECE, COUNT - 1])
def test_listing_from_a_key_on_crosses_pieces(at: int) -> None:
    keys = [layout.log_entry("s", row.run, k) for row in ROWS for k in (1, 2)]
    seal = opened(SEALED)
    for after in (keys[2 * at], keys[2 * at + 1], keys[2 * at][:-5], f"{layout.logs_of('s')}{at:07d}"):
        assert seal.log_keys(layout.logs_of("s"), after) == [key for key in keys if key > after]
    few = f"{layout.logs_of('s')}{at:07d}"[:-1]
    assert seal.log_keys(few, "") == [key for key in keys if key.startswith(few)]


def test_long_seal_of_an_earlier_hostler_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "PIECE", COUNT)
    data = encode_seal("s", ROWS, "one")
    monkeypatch.undo()
    assert data[4] == 1 and SEALED[4] == 2
    monkeypatch.setattr(seals, "AT_ONCE", 1000)
    seal = opened(data)
    assert seal.rows == opened(SEALED).rows and seal.submission == "one"


def _parts(data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The head and the pieces of a seal."""
    end = BEGIN + struct.unpack_from("<I", data, 8)[0]
    head, pieces = json.loads(zlib.decompress(data[BEGIN:end])), []
    for size in head["bytes"]:
        pieces.append(json.loads(zlib.decompress(data[end : end + size])))
        end += size
    return head, pieces


def _joined(head: dict[str, Any], pieces: list[dict[str, Any]]) -> bytes:
    packed = [zlib.compress(json.dumps(piece).encode()) for piece in pieces]
    text = zlib.compress(json.dumps({**head, "bytes": [len(piece) for piece in packed]}).encode())
    return b"".join([SEALED[:8], struct.pack("<I", len(text)), text, *packed])


def _other_run(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    pieces[1]["runs"][0] = "0002000-s-000000"


def _other_sweep(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    pieces[1]["runs"] = [run.replace("-s-", "-t-") for run in pieces[1]["runs"]]


def _out_of_order(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    pieces[0]["runs"][-1] = ROWS[PIECE + 1].run


def _one_place(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    pieces[2]["start"] = pieces[0]["start"][:500]


def _fewer(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    for column in pieces[1].values():
        del column[-1]


def _more_entries(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    pieces[1]["heads"][0] = 900_000


def _much(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    pieces[1]["ends"] = [[]] * 200_000


def _no_pack(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    head["packs"] = ["../x"]


def _short_piece(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    """Else each of very many could take what a piece may take besides its bytes."""
    head["counts"][0] = seals.LEAST - 1


def _not_numbers(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    head["counts"] = [True, None, "x"]


def _uneven(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    head["firsts"].pop()


def _all_entries(head: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    head["entries"][0] = 10**9


IN_A_PIECE = (_other_run, _other_sweep, _out_of_order, _one_place, _fewer, _more_entries, _much)
IN_THE_HEAD = (_no_pack, _short_piece, _not_numbers, _uneven, _all_entries)
Bend = Callable[[dict[str, Any], list[dict[str, Any]]], None]


@pytest.mark.parametrize("bend", [*IN_A_PIECE, *IN_THE_HEAD])
def test_seal_with_another_piece_is_damaged(bend: Bend) -> None:
    head, pieces = _parts(SEALED)
    assert decode_seal(_joined(head, pieces), "key", "s", 1, "stamp").count == COUNT
    bend(head, pieces)
    with pytest.raises(DamagedError, match=r"key|sealed") as said:
        decode_seal(_joined(head, pieces), "key", "s", 1, "stamp")
    assert "\n" not in said.value.message


@pytest.mark.parametrize("bend", IN_THE_HEAD)
def test_damaged_head_is_seen_before_any_piece(bend: Bend) -> None:
    head, pieces = _parts(SEALED)
    bend(head, pieces)
    with pytest.raises(DamagedError):
        opened(_joined(head, pieces))


@pytest.mark.parametrize("end", [9, 11, 13, 200, -1])
def test_seal_that_was_cut_off_is_damaged(end: int) -> None:
    with pytest.raises(DamagedError):
        decode_seal(SEALED[:end], "key", "s", 1, "stamp")


def test_bytes_after_the_last_piece_are_damage() -> None:
    with pytest.raises(DamagedError):
        opened(SEALED + b"0")


@pytest.mark.parametrize("middle", [b"[],", b"700,", b'"xy",'])
def test_piece_of_much_takes_no_memory(middle: bytes) -> None:
    head, _ = _parts(SEALED)
    bomb = zlib.compress(b'{"runs":[' + middle * 2_000_000 + b"0]}", 9)
    text = zlib.compress(json.dumps({**head, "bytes": [len(bomb)] * 3}).encode())
    data = b"".join([SEALED[:8], struct.pack("<I", len(text)), text, bomb * 3])
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError):
            opened(data).row(ROWS[0].run)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def _stored() -> tuple[PackedStore, MemoryStore]:
    inner = MemoryStore()
    submit(inner, 3)
    inner.put(layout.seal("s", 1), encode_seal("s", ROWS))
    store = PackedStore(inner, clock=lambda: 0.0)  # a look holds for ever
    assert store.sealed("s") is not None
    return store, inner


def test_seal_that_goes_while_it_is_read_is_no_longer_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "AT_ONCE", 1000)
    store, inner = _stored()
    inner.delete(layout.seal("s", 1))
    with pytest.raises(NotFound, match="log"):
        store.get(layout.log_entry("s", ROWS[-1].run, 1))
    assert not [*store.list(layout.logs_of("s"))] and not [*store.keys(layout.ends("s"))]


@pytest.mark.parametrize("ask", ["list", "keys"])
def test_seal_of_another_sweep_in_its_place_is_read_anew(ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "AT_ONCE", 1000)
    store, inner = _stored()
    inner.put(layout.seal("s", 1), encode_seal("s", ROWS[: PIECE + 5]))
    names = (
        [row.key for row in store.list(layout.ends("s"))] if ask == "list" else store.keys(layout.ends("s"))
    )
    assert names == [layout.end("s", row.run, 2) for row in ROWS[: PIECE + 5]]


def test_damaged_piece_is_said_of_the_whole_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run of another piece everything can be had."""
    monkeypatch.setattr(seals, "AT_ONCE", 1000)
    store, inner = _stored()
    data = bytearray(inner.get(layout.seal("s", 1)).data)
    data[-100:] = bytes(100)
    inner.put(layout.seal("s", 1), bytes(data))
    store.look("s")
    assert store.keys(layout.log_entry("s", ROWS[0].run, 1)) == [layout.log_entry("s", ROWS[0].run, 1)]
    with pytest.raises(DamagedError, match=layout.seal("s", 1)):
        store.sealed_whole("s")
