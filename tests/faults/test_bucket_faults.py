"""What a bucket can do to a store, from the emulator through the driver: retried within the bound or told
in one clear line, and never a wrong state."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import servers
from hostler.emulators.gcs import (
    DROPPED,
    EXPIRED,
    HALVED,
    LOST,
    Fault,
    GcsEmulator,
    Kind,
    busy,
    cut,
    failed,
    slow,
)
from hostler.errors import MachineError, StoreError, StoreUnreachable
from hostler.store import NotFound
from hostler.store.bucket import BucketStore
from hostler.store.retry import RetryTime

URL = f"gs://{servers.BUCKET}/p"
DRIVER_TRIES = 3  # of the driver by itself, before we hear of it
BIG = random.Random(5).randbytes(17_000_000)  # three parts

LATER = {
    "503": busy(503),
    "503 with Retry-After": busy(503, retry_after=1),
    "429": busy(429),
    "429 with Retry-After": busy(429, retry_after=1),
    "500": busy(500),
}
OF_A_WRITE = {**LATER, "lost": LOST, "dropped": DROPPED}
OF_A_WRITE |= {"done but 503": failed(503), "done but 429": failed(429)}
OF_AN_UPLOAD = {"cut": cut(), "lost": LOST, "dropped": DROPPED, "429": busy(429), "done but 503": failed(503)}
FOR_EVER = {"503": busy(503), "429": busy(429, retry_after=60), "lost": LOST, "dropped": DROPPED}

later = pytest.mark.parametrize("fault", LATER.values(), ids=LATER)


def by_turns(faults: Mapping[str, Fault], others: Sequence[Any]) -> list[Any]:
    """Each fault with one of the others, by turns; with all of them in the long dose."""
    return [
        pytest.param(fault, other, marks=[pytest.mark.soak] * (n % len(others) != m), id=f"{name}-{other}")
        for n, (name, fault) in enumerate(faults.items())
        for m, other in enumerate(others)
    ]


of_a_write = pytest.mark.parametrize(("fault", "times"), by_turns(OF_A_WRITE, [1, DRIVER_TRIES + 1]))


@pytest.fixture
def store(gcs: GcsEmulator) -> BucketStore:
    return BucketStore(URL, RetryTime(bound=8.0, sleep=lambda seconds: time.sleep(seconds / 10)))


@pytest.fixture
def hasty(gcs: GcsEmulator) -> BucketStore:
    """Gives an answer half a second."""
    return BucketStore(URL, RetryTime(bound=1.0))


@pytest.fixture
def big(tmp_path: Path) -> Path:
    path = tmp_path / "big"
    path.write_bytes(BIG)
    return path


def held(gcs: GcsEmulator, key: str) -> bytes | None:
    return gcs.content(servers.BUCKET, f"p/{key}")


@of_a_write
def test_a_lone_creator_wins_and_stores_once(
    store: BucketStore, gcs: GcsEmulator, fault: Fault, times: int
) -> None:
    gcs.faults.next(fault, Kind.WRITE, times=times)
    assert store.put("k", b"mine", if_absent=True) is True
    assert (held(gcs, "k"), gcs.writes()) == (b"mine", 1)
    assert gcs.faults.met


@of_a_write
def test_a_creator_that_comes_late_loses(
    store: BucketStore, gcs: GcsEmulator, fault: Fault, times: int
) -> None:
    store.put("k", b"theirs", if_absent=True)
    gcs.faults.next(fault, Kind.WRITE, times=times)
    assert store.put("k", b"mine", if_absent=True) is False
    assert (held(gcs, "k"), gcs.writes()) == (b"theirs", 1)


@pytest.mark.parametrize("seed", range(3))
def test_of_racing_creators_one_is_told_it_won(store: BucketStore, gcs: GcsEmulator, seed: int) -> None:
    gcs.faults.rate(0.4, seed=seed)
    barrier = threading.Barrier(6)

    def contend(name: bytes) -> list[bool]:
        barrier.wait()
        return [store.put(f"k/{n}", name, if_absent=True) for n in range(8)]

    names = [b"writer %d" % n for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        told = dict(zip(names, pool.map(contend, names), strict=True))
    for n in range(8):
        assert [held(gcs, f"k/{n}")] == [name for name in names if told[name][n]]
    assert gcs.writes() == 8


@later
def test_every_request_outlasts_a_bad_spell(
    store: BucketStore, gcs: GcsEmulator, fault: Fault, tmp_path: Path
) -> None:
    def spell(kind: Kind) -> None:
        gcs.faults.next(fault, kind, times=DRIVER_TRIES + 1)

    spell(Kind.WRITE)
    assert store.put("k", b"data") is True
    spell(Kind.READ)
    assert store.get("k", start=1, end=3).data == b"at"
    spell(Kind.LIST)
    assert [e.key for e in store.list("")] == ["k"]
    spell(Kind.LIST)
    assert [e.key for e in store.list("", deep=False)] == ["k"]
    spell(Kind.READ)
    store.download("k", tmp_path / "k")
    assert (tmp_path / "k").read_bytes() == b"data"
    spell(Kind.DELETE)
    store.delete("k")
    assert held(gcs, "k") is None
    assert gcs.faults.met == 6 * (DRIVER_TRIES + 1)


def test_a_delete_whose_answer_is_lost_is_done(store: BucketStore, gcs: GcsEmulator) -> None:
    for key in ("a", "b", "c"):
        store.put(key, b"x")
    gcs.faults.next(LOST, Kind.DELETE, key="p/b", times=2)
    store.delete("a", "b", "c")
    assert list(store.list("")) == []


def test_a_success_at_first_costs_one_request(store: BucketStore, gcs: GcsEmulator) -> None:
    store.put("k", b"x", if_absent=True)
    store.put("k", b"y")
    store.get("k")
    list(store.list(""))
    assert gcs.counts.by_kind() == {Kind.WRITE: 2, Kind.READ: 1, Kind.LIST: 1}
    assert (gcs.counts.of(Kind.READ, key="p/k"), gcs.counts.of(Kind.READ, key="p/other")) == (1, 0)


def test_an_answer_that_comes_too_late_is_settled_by_reading(hasty: BucketStore, gcs: GcsEmulator) -> None:
    gcs.faults.next(slow(0.8), Kind.WRITE)
    assert hasty.put("k", b"mine", if_absent=True) is True
    assert (held(gcs, "k"), gcs.writes()) == (b"mine", 1)


def test_answers_that_always_time_out_are_unreachable_in_bounded_time(
    hasty: BucketStore, gcs: GcsEmulator
) -> None:
    gcs.faults.always(slow(3.0))
    begin = time.monotonic()
    with pytest.raises(StoreUnreachable, match="network"):
        hasty.get("k")
    assert time.monotonic() - begin < 3.0


@pytest.mark.parametrize("fault", FOR_EVER.values(), ids=FOR_EVER)
def test_what_never_gets_better_is_unreachable_in_bounded_time(gcs: GcsEmulator, fault: Fault) -> None:
    store = BucketStore(URL, RetryTime(bound=0.5))
    gcs.faults.always(fault)
    calls: list[Callable[[], object]] = [
        lambda: store.get("k"),
        lambda: store.put("k", b"x"),
        lambda: list(store.list("")),
    ]
    begin = time.monotonic()
    for call in calls:
        with pytest.raises(StoreUnreachable, match="does not answer"):
            call()
    with pytest.raises(StoreUnreachable, match="who holds k"):
        store.put("k", b"mine", if_absent=True)
    assert time.monotonic() - begin < 6.0


@pytest.mark.parametrize(("fault", "kind"), by_turns(OF_AN_UPLOAD, [Kind.BEGIN, Kind.PART, Kind.FINISH]))
def test_large_upload_survives_a_fault_in_any_of_its_requests(
    store: BucketStore, gcs: GcsEmulator, kind: Kind, fault: Fault, big: Path
) -> None:
    store.put("big", b"old")
    gcs.faults.next(fault, kind)
    store.upload(big, "big")
    assert held(gcs, "big") == BIG
    assert gcs.faults.met == 1


def test_large_upload_with_repeated_resets_is_whole_in_the_end(
    store: BucketStore, gcs: GcsEmulator, big: Path
) -> None:
    gcs.faults.next(cut(), Kind.PART, times=3 * DRIVER_TRIES)
    store.upload(big, "big")
    assert (held(gcs, "big"), gcs.writes(), gcs.pending()) == (BIG, 1, [])


def test_a_large_upload_that_cannot_be_finished_changes_nothing(gcs: GcsEmulator, big: Path) -> None:
    store = BucketStore(URL, RetryTime(bound=0.5))
    store.put("big", b"old")
    gcs.faults.always(cut(), Kind.PART)
    with pytest.raises(StoreUnreachable, match="did not take big whole"):
        store.upload(big, "big")
    assert (held(gcs, "big"), gcs.pending()) == (b"old", [])


def test_a_download_cut_half_way_is_whole_or_not_there(
    store: BucketStore, gcs: GcsEmulator, tmp_path: Path
) -> None:
    store.put("big", BIG[:3_000_000])
    gcs.faults.next(HALVED, Kind.READ, times=2)
    store.download("big", tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == BIG[:3_000_000]
    gcs.faults.next(HALVED, Kind.READ)
    gcs.faults.always(busy(503), Kind.READ)
    with pytest.raises(StoreUnreachable):
        BucketStore(URL, RetryTime(bound=0.5)).download("big", tmp_path / "half")
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_a_bucket_that_vanishes_during_a_download_is_named(
    store: BucketStore, gcs: GcsEmulator, tmp_path: Path
) -> None:
    store.put("big", BIG[:3_000_000])
    gcs.faults.next(HALVED, Kind.READ)
    gcs.faults.always(busy(404), Kind.READ)
    with pytest.raises(StoreError, match="the bucket does not exist"):
        store.download("big", tmp_path / "half")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[GcsEmulator]:
    """Takes only tokens its metadata server gave out."""
    with GcsEmulator(servers.BUCKET, strict=True) as started:
        for name, value in started.environ().items():
            monkeypatch.setenv(name, value)
        yield started


def test_a_token_the_server_no_longer_takes_is_replaced(strict: GcsEmulator, tmp_path: Path) -> None:
    store = BucketStore(URL, RetryTime(bound=5.0))
    (tmp_path / "up").write_bytes(b"up")
    calls: list[Callable[[], object]] = [
        lambda: store.put("k", b"x", if_absent=True),
        lambda: store.put("k", b"y"),
        lambda: store.get("k"),
        lambda: list(store.list("")),
        lambda: list(store.list("", deep=False)),
        lambda: store.upload(tmp_path / "up", "up"),
        lambda: store.download("k", tmp_path / "k"),
        lambda: store.delete("k"),
    ]
    for call in calls:
        call()
        strict.tokens.expire()
    assert strict.writes() == 3
    assert [entry.key for entry in store.list("")] == ["up"]


def test_listing_continues_when_the_token_expires_between_its_pages(strict: GcsEmulator) -> None:
    store = BucketStore(URL, RetryTime(bound=5.0))
    names = [f"{n:04d}" for n in range(1100)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: store.put(name, b""), names))
    rows = store.list("")
    first = next(rows).key
    strict.tokens.expire()
    assert [first, *(row.key for row in rows)] == names


def test_token_that_is_never_accepted_is_denied_after_one_renewal(
    store: BucketStore, gcs: GcsEmulator
) -> None:
    gcs.faults.always(EXPIRED)
    calls: list[Callable[[], object]] = [
        lambda: store.get("k"),
        lambda: store.put("k", b"x"),
        lambda: store.put("k", b"x", if_absent=True),
        lambda: list(store.list("")),
    ]
    for call in calls:
        gcs.counts.clear()
        with pytest.raises(StoreError, match=r"the credentials are not accepted") as caught:
            call()
        assert not isinstance(caught.value, StoreUnreachable)
        assert gcs.counts.of() == 2


def test_a_bucket_that_vanished_is_named_and_never_looks_empty(
    store: BucketStore, gcs: GcsEmulator, big: Path, tmp_path: Path
) -> None:
    store.put("k", b"x")
    gcs.remove_bucket(servers.BUCKET)
    calls: list[Callable[[], object]] = [
        lambda: store.get("k"),
        lambda: store.get("k", start=2, end=2),
        lambda: store.put("k", b"x"),
        lambda: store.put("k", b"x", if_absent=True),
        lambda: list(store.list("")),
        lambda: list(store.list("", deep=False)),
        lambda: store.delete("k"),
        lambda: store.delete("k", "l"),
        lambda: store.upload(big, "big"),
        lambda: store.download("k", tmp_path / "k"),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="the bucket does not exist") as caught:
            call()
        assert not isinstance(caught.value, NotFound | StoreUnreachable)
    assert [path.name for path in tmp_path.iterdir()] == ["big"]


def test_a_bucket_that_vanishes_during_an_upload_is_named(
    store: BucketStore, gcs: GcsEmulator, big: Path
) -> None:
    gcs.faults.next(slow(0.3), Kind.PART, times=3)
    with ThreadPoolExecutor(1) as pool:
        upload = pool.submit(store.upload, big, "big")
        while not gcs.counts.of(Kind.PART):
            time.sleep(0.01)
        gcs.remove_bucket(servers.BUCKET)
        with pytest.raises(StoreError, match="the bucket does not exist"):
            upload.result()


def test_a_download_to_a_full_disk_is_this_machines_trouble(
    store: BucketStore, gcs: GcsEmulator, small_disk: Path
) -> None:
    store.put("big", BIG[:2_000_000])
    with pytest.raises(MachineError, match="cannot be written"):
        store.download("big", small_disk / "big")
    assert list(small_disk.iterdir()) == []
    assert gcs.counts.of(Kind.READ) == 1


def test_download_to_a_read_only_disk_blames_this_machine(store: BucketStore, small_disk: Path) -> None:
    store.put("k", b"x")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(MachineError, match="cannot be written"):
        store.download("k", small_disk / "k")
