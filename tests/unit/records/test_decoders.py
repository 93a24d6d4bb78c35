"""Any bytes of a store are a value or damaged; decoders take memory for what is there alone."""

from __future__ import annotations

import json
import struct
import tempfile
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.body import DEPTH, decode, encode
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.restorer import restore, rows_of
from hostler.records.packs.pack_format import decode_chunk
from hostler.records.packs.seals import COLUMNS, decode_seal
from hostler.records.run import log
from hostler.records.run.history import events, tries
from hostler.records.run.state import fold
from hostler.records.series import metrics, segments
from hostler.records.series.metrics import fragment
from hostler.records.sweep.queue import Queue
from hostler.spec.job import Job
from hostler.store import NotFound
from hostler.store.memory import MemoryStore

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {"kind": st.sampled_from(["claim", "release", "end", "reopen", "stop-request"]) | JSON},
    optional={name: JSON for name in log.FIELDS if name != "kind"} | {"state": st.sampled_from(log.ENDS)},
)
HEADER = st.fixed_dictionaries(
    {
        "rows": st.integers(-1, 2**40) | JSON,
        "run": JSON | st.just(["all", "0000000-a-b"]),
        "k": JSON | st.just(["i", 0, 1]),
        "apart": JSON | st.just([]),
        "end": JSON | st.just({"state": [None, ["all", "done"]]}),
        "params": JSON | st.just({}),
        "totals": JSON | st.just({}),
        "tracks": JSON | st.just([]),
    }
)


def _made(decoder: Callable[[bytes, str], Any], data: bytes) -> Any:
    """None if the bytes are damaged; any error but ours fails the test."""
    try:
        return decoder(data, "sweeps/x")
    except (DamagedError, NewerFormatError) as error:
        assert "\n" not in error.message and "sweeps/x" in error.message
        return None


def _seal(data: bytes, key: str) -> object:
    return decode_seal(data, key, "a", 1, "stamp")


def _unpacked_seal(data: bytes, key: str) -> object:
    return _seal(b"HSTL\x01\x00\x00\x00" + zlib.compress(data), key)


def _unpacked_chunk(data: bytes, key: str) -> object:
    return decode_chunk(zlib.compress(data), key)


@pytest.mark.parametrize(
    "decoder",
    [
        *(decode, log.parse_entry, checkpoints.commit, segments.decode, metrics._decode),
        *(_seal, _unpacked_seal, decode_chunk, _unpacked_chunk),
    ],
)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_damaged_or_a_value(decoder: Callable[[bytes, str], Any], data: bytes) -> None:
    _made(decoder, data)


@settings(max_examples=300, deadline=None)
@given(ENTRY)
def test_any_entry_is_damaged_or_can_be_folded(entry: dict[str, Any]) -> None:
    found = _made(log.parse_entry, encode(entry))
    if found is not None:
        assert fold([found]).head == 1
        tries([found])
        events([found])


@settings(max_examples=300, deadline=None)
@given(HEADER, st.binary(max_size=40))
def test_any_segment_is_damaged_or_can_be_unpacked(header: dict[str, Any], blocks: bytes) -> None:
    found = _made(segments.decode, segments.head(header) + blocks)
    if found is not None:
        assert len(found.runs) == len(found.ks) == len(found.ends()) == len(found.params()) == found.rows


@given(
    st.dictionaries(st.sampled_from(["attempt", "start", "origin", "whole"]), JSON), st.binary(max_size=60)
)
def test_any_fragment_is_damaged_or_has_points(header: dict[str, Any], packed: bytes) -> None:
    found = _made(metrics._decode, fragment(header, packed))
    assert found is None or isinstance(found.points, list)


SEAL = st.fixed_dictionaries(
    {
        **{name: st.just([1]) | JSON | st.lists(st.integers(-1, 2**40), max_size=2) for name in COLUMNS},
        "runs": st.just(["0000000-a-abcdef"]) | JSON,
        "ends": st.just([[1]]) | JSON | st.lists(st.lists(st.integers(-1, 9), max_size=2), max_size=2),
        "packs": st.just(["x", "y"]) | JSON,
    }
)


@settings(deadline=None)
@given(SEAL)
def test_any_seal_is_damaged_or_has_rows(record: dict[str, Any]) -> None:
    found = _made(_unpacked_seal, json.dumps(record).encode())
    if found is not None:
        assert [row.run for row in found.rows.values()] == sorted(found.rows) and found.count == len(
            found.rows
        )
        keys = found.log_keys("sweeps/a/ends/", "")
        assert keys == sorted({*keys}) and all(map(layout.is_log_entry, keys))


@given(st.lists(JSON | st.tuples(st.text(max_size=8), st.integers(-1, 9), JSON, JSON), max_size=3))
def test_any_chunk_is_damaged_or_has_objects(header: list[Any]) -> None:
    text = json.dumps(header).encode()
    found = _made(_unpacked_chunk, struct.pack("<I", len(text)) + text + bytes(9))
    assert found is None or all(type(one.data) is bytes for one in found.values())


ROW = st.fixed_dictionaries(
    {"name": st.sampled_from(["w", "a/b"])},
    optional={name: st.integers(-2, 12) | JSON for name in ("at", "size", "n", "parts")},
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, max_size=3))
def test_any_rows_of_a_bundle_are_damaged_or_what_is_there(rows: list[dict[str, Any]]) -> None:
    """A row that points out of its object brings nothing."""
    store = MemoryStore()
    store.put(layout.checkpoint_file("r", 1, 1, 0), b"abcdefgh")
    try:
        files = rows_of(rows)
        with tempfile.TemporaryDirectory() as folder:
            restore(store, files, lambda n: layout.checkpoint_file("r", 1, 1, n), Path(folder))
            found = {row.name: Path(folder, row.name).read_bytes() for row in files}
    except (DamagedError, NotFound):
        return
    assert found == {row.name: b"abcdefgh"[row.at or 0 :][: row.size] for row in files}
    assert all(len(found[row.name]) == row.size for row in files)


@given(st.text(max_size=20))
def test_any_name_is_skipped_or_has_its_numbers(name: str) -> None:
    layout.split_fragment(f"runs/x/logs/{name}")
    layout.split_turn(f"sweeps/x/turns/{name}")
    layout.split_part(f"runs/x/checkpoints/1-1/parts/{name}")
    layout.split_gang(f"runs/x/gang/000001/{name}")
    layout.split_rung(f"sweeps/x/rungs/{name}/{name}")
    layout.split_checkpoint(f"runs/x/checkpoints/{name}/COMMIT")
    layout.split_output(f"runs/x/outputs/{name}/COMMIT")
    layout.split_tracked(f"runs/x/trackers/{name}/a")
    if layout.is_log_entry(f"sweeps/x/log/{name}"):
        run, k = layout.split_log_entry(f"sweeps/x/log/{name}")
        assert log.index_of(run) >= 0 and k >= 0


@pytest.mark.parametrize(
    "name", ["0000001x-a-000001.json", "0000001-a-00000².json", "0000001-a-0000001.json"]
)
def test_name_that_hostler_does_not_write_is_no_entry(name: str) -> None:
    assert not layout.is_log_entry(f"sweeps/x/log/{name}")


@pytest.mark.parametrize(
    "data",
    [b"[" * 50_000_000, b'{"a":' * 500 + b"1" + b"}" * 500, b'{"a":' + b"9" * 5000 + b"}"],
    ids=["deep", "tables", "digits"],
)
def test_deep_or_endless_json_is_damaged(data: bytes) -> None:
    with pytest.raises(DamagedError):
        decode(data, "k")


def test_tables_up_to_the_bound_are_read() -> None:
    deep: Any = 1
    for _ in range(DEPTH - 2):
        deep = {"a": deep}
    assert decode(encode({"deep": deep, "wide": [{}] * 1000}), "k")["deep"]


@pytest.mark.parametrize("version", [b"1e400", b"NaN", b'"2"', b"[1]", b"true"])
def test_format_that_is_not_a_number_is_damaged(version: bytes) -> None:
    with pytest.raises(DamagedError):
        decode(b'{"format":' + version + b"}", "k")


def test_segment_of_rows_without_bytes_takes_no_memory() -> None:
    many = 3 * 10**8
    header = {"rows": many, "run": ["all", "0000000-a-b"], "apart": [], "end": {}, "params": {}, "totals": {}}
    tracemalloc.start()
    try:
        for column in (["i", 0, many], ["all", 2], ["i", 0, 1]):
            with pytest.raises(DamagedError):
                segments.decode(segments.head({**header, "k": column, "tracks": []}) + bytes(2000), "k")
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_worker_leaves_a_damaged_run_and_takes_others() -> None:
    store = MemoryStore()
    job = Job(name="s", command=("x",), runs=({"a": 1}, {"a": 2}, {"a": 3}))
    bad = job.run_id(1)
    store.put(layout.log_entry("s", bad, 1), b"[" * 200_000)
    queue = Queue(store, job)
    assert [run.key.index for run in queue.open(whole=True)] == [0, 2]
    assert list(queue.damaged) == [bad] and layout.log_entry("s", bad, 1) in queue.damaged[bad]
