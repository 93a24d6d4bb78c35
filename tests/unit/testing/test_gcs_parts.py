from __future__ import annotations

import random

import pytest

from hostler.emulators.gcs import LOST, Faults, GcsEmulator, Kind, busy
from hostler.emulators.gcs.bucket import Bucket, Query
from hostler.emulators.gcs.media import span_of
from hostler.emulators.gcs.message import Refusal
from hostler.emulators.gcs.multipart import parts_of
from hostler.emulators.gcs.objects import Object
from hostler.emulators.gcs.route import Api, Route, route
from hostler.emulators.gcs.tokens import Tokens
from hostler.trackers.crc32c import crc32c


def test_the_checksum_is_the_published_one() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        ("", None),
        ("bytes=2-4", (2, 5)),
        ("bytes=2-", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=8-99", (8, 10)),
    ],
)
def test_a_range_is_read_as_http_means_it(asked: str, span: tuple[int, int] | None) -> None:
    assert span_of(asked, 10) == span


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=10-12", "bytes=-0"])
def test_a_range_beyond_the_object_is_refused(asked: str) -> None:
    with pytest.raises(Refusal) as caught:
        span_of(asked, 10)
    assert caught.value.status == 416


def test_parts_keep_their_bytes() -> None:
    data = b"\r\n\r\n--x not at\nthe end--x\r\n\x00\xff"
    body = b'--x\r\nContent-Type: a/b\r\n\r\n{"name": "k"}\r\n--x\r\nA: 1\r\n\r\n' + data + b"\r\n--x--\r\n"
    assert [part.body for part in parts_of(body.replace(b"--x not", b"-- x not"), b"x")] == [
        b'{"name": "k"}',
        data.replace(b"--x not", b"-- x not"),
    ]


def test_pages_put_together_are_the_whole_listing() -> None:
    bucket, chance = Bucket("b", 0.0), random.Random(1)
    names = {"".join(chance.choices("ab/-", k=chance.randint(1, 6))) for _ in range(200)}
    for name in names:
        bucket.put(Object("b", name, b"", 1, 0.0, 0.0))
    for prefix, delimiter, most in (("", "", 7), ("a", "/", 3), ("a/", "/", 1), ("", "/", 1000)):
        keys: list[str] = []
        folders: list[str] = []
        token = ""
        while True:
            page = bucket.page(Query(prefix, delimiter, token=token, most=most))
            keys += [one.name for one in page.objects]
            folders += page.prefixes
            token = page.token
            if not token:
                break
        under = sorted(name for name in names if name.startswith(prefix))
        flat = [n for n in under if not delimiter or delimiter not in n[len(prefix) :]]
        deep = [prefix + n[len(prefix) :].split("/")[0] + "/" for n in under if n not in flat]
        assert (keys, folders) == (flat, sorted(set(deep)))


def test_a_request_is_told_by_its_head() -> None:
    assert route("PUT", "/b/a/k%20x", {}, {}) == Route(Api.XML, Kind.WRITE, "b", "a/k x")
    assert route("PUT", "/b/k", {"uploadId": "1", "partNumber": "1"}, {}).kind is Kind.PART
    assert route("POST", "/b/k", {"uploads": ""}, {}).kind is Kind.BEGIN
    assert route("GET", "/b", {"list-type": "2", "prefix": "p/"}, {}) == Route(Api.XML, Kind.LIST, "b", "p/")
    assert route("GET", "/storage/v1/b/b/o/a%2Fk", {}, {}) == Route(Api.JSON, Kind.LOOK, "b", "a/k")
    assert route("GET", "/storage/v1/b/b/o/k", {"alt": "media"}, {}).kind is Kind.READ


def test_share_of_faults_is_the_same_for_the_same_seed() -> None:
    def met(seed: int) -> list[object]:
        faults = Faults()
        faults.rate(0.05, seed=seed)
        return [faults.choose(Route(Api.XML, Kind.READ, "b", "k")) for _ in range(2000)]

    assert met(1) == met(1) != met(2)
    assert 60 < sum(fault is not None for fault in met(1)) < 140


def test_fault_meets_the_requests_it_was_meant_for() -> None:
    faults = Faults()
    faults.next(LOST, Kind.WRITE, key="a/", times=2)
    faults.always(busy(503), Kind.LIST)
    at = Route(Api.XML, Kind.WRITE, "b", "a/k")
    assert faults.choose(Route(Api.XML, Kind.WRITE, "b", "b/k")) is None
    assert [faults.choose(at) for _ in range(3)] == [LOST, LOST, None]
    assert faults.choose(Route(Api.XML, Kind.LIST, "b", "")) == busy(503)
    assert faults.met == 3
    faults.clear()
    assert faults.choose(Route(Api.XML, Kind.LIST, "b", "")) is None


def test_a_token_is_good_for_its_life() -> None:
    now = 0.0
    tokens = Tokens(life=60.0, clock=lambda: now)
    given = f"Bearer {tokens.issue()}"
    assert tokens.good(given) and not tokens.good("Bearer other") and not tokens.good("")
    now = 61.0
    assert not tokens.good(given)


def test_an_emulator_that_was_stopped_has_no_address() -> None:
    with GcsEmulator() as gcs:
        assert gcs.environ() == {"STORAGE_EMULATOR_HOST": gcs.url}
    with pytest.raises(RuntimeError, match="with"):
        _ = gcs.url
