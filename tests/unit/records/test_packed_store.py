from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hostler
from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.packs import covered_keys, pack_format, packer, seals
from hostler.records.packs.covered_keys import RecordPlace
from hostler.records.packs.pack_format import PackedObject, Where
from hostler.records.packs.packed_store import HOLDS, PackedStore
from hostler.records.run import log
from hostler.spec.job import Job
from hostler.store import Entry
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore
from hostler.testing.store_contract import StoreContract
from packed_world import no_wait, submit, take

RUN = "0000003-a-b-46721f"


class TestContract(StoreContract):
    """A store without packs is any store."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> PackedStore:
        return PackedStore(FolderStore(tmp_path))


@pytest.mark.parametrize(
    ("key", "place"),
    [
        (f"sweeps/a-b/log/{RUN}-000002.json", RecordPlace("a-b", RUN, 2, False)),
        (f"sweeps/a-b/ends/{RUN}-000002.json", RecordPlace("a-b", RUN, 2, False)),
        (f"runs/{RUN}/metrics/000004-0000-00000001", RecordPlace("a-b", RUN, 4, True)),
        (f"runs/{RUN}/logs/000004-0001-00000001", RecordPlace("a-b", RUN, 4, True)),
        (f"runs/{RUN}/env/000004.json", RecordPlace("a-b", RUN, 4, True)),
        (f"runs/{RUN}/metrics/000004-999999-00000000", None),
        (f"runs/{RUN}/checkpoints/000004-000000000001/COMMIT", None),
        (f"runs/{RUN}/inputs.json", None),
        ("sweeps/a-b/spec/000001.json", None),
        ("sweeps/a-b/log/notes.txt", None),
        ("runs/x/metrics/000004-0000-00000001", None),
    ],
)
def test_keys_that_packs_may_hold_have_a_place(key: str, place: RecordPlace | None) -> None:
    assert covered_keys.place(key) == place


def over(store: PackedStore, count: int = 3) -> Job:
    job = submit(store, count)
    for index in range(count):
        take(store, job, index).end("done", attempts=1, metrics={})
    return job


@pytest.fixture
def inner() -> MemoryStore:
    return MemoryStore()


def asked(inner: MemoryStore) -> list[str]:
    """Requests from now on."""
    found: list[str] = []
    inner.before = lambda operation, key: found.append(f"{operation} {key}")
    return found


def test_look_costs_one_listing_in_ten_seconds(inner: MemoryStore) -> None:
    now = [0.0]
    store = PackedStore(inner, clock=lambda: now[0])
    job = submit(store, 2)
    found = asked(inner)
    take(store, job, 0).end("done", attempts=1, metrics={})
    log.heads(store, "s")
    assert found.count("list sweeps/s/sealed/") == 1
    now[0] += HOLDS + 1
    log.heads(store, "s")
    assert found.count("list sweeps/s/sealed/") == 2


def test_seal_that_comes_while_a_listing_is_read_is_seen(inner: MemoryStore) -> None:
    now = [0.0]
    store = PackedStore(inner, clock=lambda: now[0])
    job = over(store, 400)
    before = list(log.heads(store, "s").items())
    rows = store.list(layout.logs_of("s"))
    first = [next(rows).key for _ in range(10)]
    packer.pack(PackedStore(inner), job, no_wait)
    now[0] += HOLDS + 1
    keys = first + [row.key for row in rows]
    assert log.newest_of([key[len(layout.logs_of("s")) :] for key in keys]) == dict(before)
    assert len(keys) == 800


@pytest.mark.parametrize("after", [0, 1, 2])
def test_listing_after_a_key_begins_there(inner: MemoryStore, after: int) -> None:
    store = PackedStore(inner)
    job = over(store)
    prefix = layout.logs_of("s")
    every = [entry.key for entry in store.list(prefix)]
    packer.pack(store, job, no_wait)
    for start in (every[after], f"{prefix}{after:07d}"):
        assert [e.key for e in store.list(prefix, start)] == [key for key in every if key > start]
        assert list(store.keys(prefix, start)) == [key for key in every if key > start]
    assert log.head(store, log.RunKey("s", job.run_id(after))) == 2


def test_ranges_and_downloads_come_from_the_pack(inner: MemoryStore, tmp_path: Path) -> None:
    store = PackedStore(inner)
    job = over(store)
    key = layout.log_entry("s", job.run_id(1), 2)
    data = store.get(key).data
    packer.pack(store, job, no_wait)
    assert store.get(key, start=3, end=9).data == data[3:9]
    store.download(key, tmp_path / "entry")
    assert (tmp_path / "entry").read_bytes() == data


def test_missing_pack_is_said_to_be_missing(inner: MemoryStore) -> None:
    store = PackedStore(inner)
    job = over(store)
    packer.pack(store, job, no_wait)
    inner.delete(*[entry.key for entry in inner.list(layout.packs("s"))])
    with pytest.raises(DamagedError, match="is missing"):
        PackedStore(inner).get(layout.log_entry("s", job.run_id(0), 1))


def where(run: str = RUN) -> Where:
    return Where(run, 2, (2,), True, "own-000001", 8, 100)


def test_seal_is_read_back_as_it_was_written() -> None:
    seal = seals.decode_seal(seals.encode_seal("a-b", [where()]), "key", "a-b", 1, "stamp")
    assert seal.rows == {RUN: where()}
    assert seal.covers(RecordPlace("a-b", RUN, 2, True)) and not seal.covers(
        RecordPlace("a-b", RUN, 3, False)
    )


def test_seal_of_a_newer_hostler_asks_for_an_upgrade() -> None:
    data = bytearray(seals.encode_seal("a-b", [where()]))
    data[4] = 3
    with pytest.raises(NewerFormatError, match="newer hostler"):
        seals.decode_seal(bytes(data), "key", "a-b", 1, "stamp")


@pytest.mark.parametrize("bad", [b"", b"HSTL\x01\x00\x00\x00", b"HSTL\x01\x00\x00\x00not zlib", b"x" * 40])
def test_damaged_seals_are_said_in_a_line(bad: bytes) -> None:
    with pytest.raises(DamagedError):
        seals.decode_seal(bad, "key", "a-b", 1, "stamp")


BAD = (
    where("../x"),
    where()._replace(pack="a/b"),
    where()._replace(start=-1),
    where()._replace(head=10**12),
    where()._replace(head=1.5),  # type: ignore[arg-type]
)


@pytest.mark.parametrize("row", BAD)
def test_seals_that_name_what_is_no_key_are_refused(row: Where) -> None:
    data = seals.encode_seal("a-b", [row])
    with pytest.raises(DamagedError):
        seals.decode_seal(data, "key", "a-b", 1, "stamp")


@pytest.mark.parametrize("when", [float("nan"), float("inf"), 1e300])
def test_chunks_with_times_that_no_calendar_has_are_refused(when: float) -> None:
    data = pack_format.encode_chunk([PackedObject("k", b"data", "e", when)])
    with pytest.raises(DamagedError):
        pack_format.decode_chunk(data, "pack")


class LateAnswers(MemoryStore):
    """Does something between the reading of a listing and its arrival."""

    between: Callable[[], None] | None = None

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        rows, act, self.between = [*super().list(prefix, after, deep=deep)], self.between, None
        if act:
            act()
        yield from rows


def test_older_look_that_comes_late_replaces_no_newer() -> None:
    now, inner = [5.0], LateAnswers()
    store = PackedStore(inner, clock=lambda: now[0])
    job = over(store)

    def pack_and_look() -> None:
        packer.pack(PackedStore(inner), job, no_wait)
        now[0] = 9.0
        assert store.look("s") is not None

    inner.between = pack_and_look
    assert store.look("s") is None
    assert store.sealed("s") is not None


RAW = {
    "cli/begin/demo_cloud.py",  # whether the driver is there
    "cli/begin/init.py",  # whether it is an address
    "cli/completing.py",  # names of sweeps alone
    "cli/hubs/targets.py",  # a place for models
    "cli/run/sweep.py",  # a store that was made a moment ago
    "drill/rig.py",  # the same
    "fleet/secrets.py",  # secrets alone
    "records/packs/packed_store.py",
    "testing/racer.py",
    "train/data/shards.py",  # data, not runs
    "worker/prepare/data_dir.py",  # data of a script
    "worker/reach.py",  # whether it answers
}


def test_runs_are_read_through_packs_everywhere() -> None:
    source = Path(hostler.__file__).parent
    opens = re.compile(
        r"from hostler\.store(?:\.registry)? import .*\bopen_(?:store|at)\b|registry\.open_(?:store|at)\b"
    )
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if opens.search(path.read_text()) and "store/" not in path.relative_to(source).as_posix()[:6]
    }
    assert found == RAW


def test_damaged_chunks_are_said_in_a_line() -> None:
    good = pack_format.encode_chunk([PackedObject("k", b"data", "e", 1.0)])
    assert pack_format.decode_chunk(good, "pack") == {"k": PackedObject("k", b"data", "e", 1.0)}
    for bad in (good[:-4], b"", good[:5] + b"xx" + good[7:]):
        with pytest.raises(DamagedError):
            pack_format.decode_chunk(bad, "pack")
