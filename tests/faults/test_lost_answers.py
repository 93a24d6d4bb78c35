"""Whatever happens to answers, exactly one writer of a key is told that it won, and its bytes stand there.

A real S3 server behind a proxy that spoils answers; every request goes through the driver and its own
repetitions.
"""

from __future__ import annotations

import itertools
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))

from proxy import Fault, Proxy, running

from hostler.cli.main import cli
from hostler.errors import StoreError, StoreUnreachable
from hostler.records import project
from hostler.settings import Timing
from hostler.store import NotFound, open_store
from hostler.store.bucket import BucketStore
from hostler.store.registry import check
from hostler.store.retry import RetryTime

pytestmark = pytest.mark.real

OF_A_WRITE = [f for f in Fault if f not in (Fault.DENY_403, Fault.CUT_BODY)]
FAST = [f for f in OF_A_WRITE if f not in (Fault.SLOW_AFTER, Fault.SLOW_BEFORE)]
DRIVER_TRIES = 3  # of the driver by itself, before we hear of it


def _by_turns() -> Iterator[Any]:
    """Each fault once, or more often than the driver tries; both in the long dose."""
    for n, fault in enumerate(FAST):
        for times in (1, DRIVER_TRIES + 1):
            marks = [pytest.mark.soak] * ((n % 2 == 0) == (times == 1))
            yield pytest.param(fault, times, marks=marks, id=f"{fault.name}-{times}")


FAULTS_BY_TURNS = pytest.mark.parametrize(("fault", "times"), list(_by_turns()))


@pytest.fixture
def proxy(seaweed_store_url: str, seaweed_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with running(seaweed_url) as started:
        monkeypatch.setenv("AWS_ENDPOINT_URL", started.url)
        yield started


@pytest.fixture
def url(seaweed_store_url: str, proxy: Proxy) -> str:
    return seaweed_store_url


@pytest.fixture
def store(url: str) -> BucketStore:
    return BucketStore(url, RetryTime(bound=8.0, sleep=lambda seconds: time.sleep(seconds / 10)))


@pytest.fixture
def hasty(url: str) -> BucketStore:
    """Gives an answer one second, less than the proxy's delay."""
    return BucketStore(url, RetryTime(bound=2.0))


@FAULTS_BY_TURNS
def test_a_lone_creator_wins_and_stores_once(
    store: BucketStore, proxy: Proxy, fault: Fault, times: int
) -> None:
    proxy.script("PUT", "/k", [fault] * times)
    assert store.put("k", b"mine", if_absent=True) is True
    assert store.get("k").data == b"mine"
    assert len(proxy.stored) == 1


@FAULTS_BY_TURNS
def test_a_creator_that_comes_late_loses(store: BucketStore, proxy: Proxy, fault: Fault, times: int) -> None:
    store.put("k", b"theirs", if_absent=True)
    proxy.script("PUT", "/k", [fault] * times)
    assert store.put("k", b"mine", if_absent=True) is False
    assert store.get("k").data == b"theirs"
    assert len(proxy.stored) == 1


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.soak) for n in (2, 3))])
def test_of_racing_creators_one_is_told_it_won(store: BucketStore, proxy: Proxy, seed: int) -> None:
    chance = random.Random(seed)
    proxy.choose = lambda method, path: (
        chance.choice(FAST) if method == "PUT" and chance.random() < 0.6 else None
    )
    barrier = threading.Barrier(6)

    def contend(name: bytes) -> bool:
        barrier.wait()
        return store.put("k", name, if_absent=True)

    names = [b"writer %d" % n for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        told = dict(zip(names, pool.map(contend, names), strict=True))
    assert [store.get("k").data] == [name for name in names if told[name]]
    assert len(proxy.stored) == 1


@pytest.mark.parametrize("fault", [Fault.REFUSE_503, Fault.DROP_AFTER, Fault.LOSE_500], ids=lambda f: f.name)
def test_a_settling_read_that_fails_is_asked_again(store: BucketStore, proxy: Proxy, fault: Fault) -> None:
    """Both the write's answer and the read that should settle it are lost."""
    writes, reads = iter([Fault.DROP_AFTER] * (DRIVER_TRIES + 1)), iter([fault] * (DRIVER_TRIES + 1))
    proxy.choose = lambda method, path: next({"PUT": writes, "GET": reads}[method], None)
    assert store.put("k", b"mine", if_absent=True) is True
    assert len(proxy.stored) == 1


@pytest.mark.parametrize("fault", [Fault.SLOW_AFTER, Fault.SLOW_BEFORE], ids=lambda f: f.name)
def test_an_answer_that_comes_too_late_is_settled_by_reading(
    hasty: BucketStore, proxy: Proxy, fault: Fault
) -> None:
    proxy.script("PUT", "/k", [fault])
    assert hasty.put("k", b"mine", if_absent=True) is True
    time.sleep(proxy.delay)
    assert hasty.get("k").data == b"mine"
    assert len(proxy.stored) == 1


def test_write_arriving_after_another_took_the_key_is_lost(hasty: BucketStore, proxy: Proxy) -> None:
    proxy.script("PUT", "/k", [Fault.SLOW_BEFORE])
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(hasty.put, "k", b"late", if_absent=True)
        while not proxy.asked("PUT"):
            time.sleep(0.01)
        assert hasty.put("k", b"prompt", if_absent=True) is True
        assert late.result() is False
    assert hasty.get("k").data == b"prompt"


def test_a_create_nobody_can_settle_is_unreachable_not_lost(url: str, proxy: Proxy) -> None:
    proxy.choose = lambda method, path: Fault.LOSE_503
    with pytest.raises(StoreUnreachable, match="who holds k"):
        BucketStore(url, RetryTime(bound=1.0)).put("k", b"mine", if_absent=True)
    proxy.choose = lambda method, path: None
    assert open_store(url).put("k", b"mine", if_absent=True) is True  # the same bytes: it was stored
    assert len(proxy.stored) == 1


@pytest.mark.parametrize("fault", [Fault.REFUSE_503, Fault.LOSE_500, Fault.DROP_AFTER], ids=lambda f: f.name)
def test_reads_and_plain_writes_outlast_a_bad_spell(
    store: BucketStore, proxy: Proxy, fault: Fault, tmp_path: Path
) -> None:
    def spell(method: str) -> None:
        left = iter([fault] * (DRIVER_TRIES + 1))
        proxy.choose = lambda got, path: next(left, None) if got == method else None

    spell("PUT")
    assert store.put("k", b"data") is True
    spell("GET")
    assert store.get("k").data == b"data"
    spell("GET")
    assert [e.key for e in store.list("")] == ["k"]
    spell("GET")
    store.download("k", tmp_path / "k")
    assert (tmp_path / "k").read_bytes() == b"data"
    spell("POST")
    store.delete("k")
    spell("GET")
    with pytest.raises(NotFound):
        store.get("k")


def test_a_download_cut_half_way_is_whole_or_not_there(
    store: BucketStore, url: str, proxy: Proxy, tmp_path: Path
) -> None:
    data = random.Random(3).randbytes(3_000_000)
    store.put("big", data)
    proxy.script("GET", "/big", [Fault.CUT_BODY] * 2)
    store.download("big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == data
    faults = itertools.chain([Fault.CUT_BODY], itertools.repeat(Fault.REFUSE_503))
    proxy.choose = lambda method, path: next(faults)
    with pytest.raises(StoreUnreachable):
        BucketStore(url, RetryTime(bound=0.5)).download("big", tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir()] == ["big"]


def test_listing_costs_a_request_per_thousand_keys_and_survives_faults(
    store: BucketStore, proxy: Proxy
) -> None:
    names = [f"log/{n:06d}" for n in range(1050)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.put(name, b""), names))

    def listed(prefix: str, after: str = "", most: int = 10_000) -> tuple[list[str], int]:
        proxy.seen.clear()
        rows = store.list(prefix, after)
        return [row.key for row, _ in zip(rows, range(most), strict=False)], len(proxy.seen)

    assert listed("log/") == (names, 2)
    assert listed("log/", names[100]) == (names[101:], 1)
    assert listed("log/0000") == (names[:100], 1)
    assert listed("log/0010") == (names[1000:], 1)
    assert listed("log/", most=10) == (names[:10], 1)
    pages = iter([None, *[Fault.REFUSE_503] * (DRIVER_TRIES + 1)])
    proxy.choose = lambda method, path: next(pages, None)
    assert listed("log/")[0] == names


def test_a_refusal_is_said_at_once(store: BucketStore, proxy: Proxy) -> None:
    proxy.choose = lambda method, path: Fault.DENY_403
    for call in (
        lambda: store.get("k"),
        lambda: store.put("k", b"x"),
        lambda: store.put("k", b"x", if_absent=True),
        lambda: list(store.list("")),
    ):
        proxy.seen.clear()
        with pytest.raises(StoreError, match=r"denied.*credentials"):
            call()
        assert len(proxy.seen) == 2, "the second asks whether the bucket is there at all"


@pytest.mark.parametrize("server", ["moto_store_url", "seaweed_store_url"])
def test_a_missing_bucket_is_named(server: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(server)
    store = open_store("s3://no-such-bucket/prefix")
    for call in (
        lambda: store.get("k"),
        lambda: store.put("k", b"x"),
        lambda: store.put("k", b"x", if_absent=True),
        lambda: list(store.list("")),
        lambda: list(store.list("", deep=False)),
    ):
        with pytest.raises(StoreError, match="the bucket does not exist") as caught:
            call()
        assert not isinstance(caught.value, NotFound | StoreUnreachable)


def test_bucket_that_ignores_conditional_writes_is_refused(url: str, proxy: Proxy) -> None:
    store = open_store(url)
    check(store)
    assert list(store.list("")) == []
    proxy.strips = ("if-none-match",)
    with pytest.raises(StoreError, match="ignores conditional writes") as error:
        check(store)
    assert "SeaweedFS" in error.value.hint
    with pytest.raises(StoreError, match="every worker would win every run"):
        project.ensure(store, "p", Timing())
    words = [sys.executable, "-m", "hostler.worker", url, "--no-parent"]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert answer.returncode == StoreError.exit_code and "ignores conditional writes" in answer.stderr
    assert list(store.list("")) == []


def test_doctor_calls_a_bucket_that_ignores_conditions_bad(
    url: str, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hostler.yaml").write_text(f"name: p\nstore: {url}\n")
    monkeypatch.chdir(tmp_path)

    def told() -> list[tuple[str, str]]:
        answer = CliRunner().invoke(cli, ["doctor", "--json"])
        checks = [one for one in json.loads(answer.stdout) if one["what"] == "store"]
        return [(one["level"], one["detail"]) for one in checks]

    [(level, detail)] = told()
    assert level == "ok" and "can be written, read and deleted" in detail
    proxy.strips = ("if-none-match",)
    [(level, detail)] = told()
    assert level == "bad" and "ignores conditional writes" in detail


@pytest.mark.parametrize("how", ["refused", "silent", "unknown host"])
def test_a_dead_endpoint_is_unreachable_in_bounded_time(
    moto_store_url: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if how == "silent":
            listener.listen()
        host = "nowhere.invalid" if how == "unknown host" else "127.0.0.1"
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{listener.getsockname()[1]}")
        begin = time.monotonic()
        for call in (
            lambda s: s.get("k"),
            lambda s: s.put("k", b"x", if_absent=True),
            lambda s: list(s.list("")),
        ):
            with pytest.raises(StoreUnreachable, match=r"endpoint|network"):
                call(open_store(moto_store_url, retry=0.5))
        assert time.monotonic() - begin < 3 * 3 * 0.5


def test_an_endpoint_that_is_no_url_is_refused(moto_store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nonsense")
    with pytest.raises(StoreError, match="endpoint is not a URL"):
        open_store(moto_store_url).get("k")
