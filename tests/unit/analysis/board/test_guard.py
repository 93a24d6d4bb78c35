"""Who may see the dashboard, and act through it."""

from __future__ import annotations

import pytest

from hostler.analysis.board.guard import Guard, is_loopback, is_too_long

HERE = Guard("127.0.0.1", 8642, "secret")
OPEN = Guard("0.0.0.0", 8642, token="secret", names=("gpu.example.org",))


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:8642", "[::1]:8642", "127.0.0.2:8642"])
def test_loopback_names_are_known(host: str) -> None:
    assert HERE.knows_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8642",
        "127.0.0.1.evil.example:8642",
        "localhost:80",
        "localhost",
        "",
        "10.0.0.1:8642",
        "[::1",
    ],
)
def test_a_rebound_name_or_another_port_is_refused(host: str) -> None:
    assert not HERE.knows_host(host)


def test_only_addresses_and_given_names_pass_beyond_loopback() -> None:
    assert OPEN.knows_host("192.168.1.7:8642")
    assert OPEN.knows_host("gpu.example.org:8642")
    assert not OPEN.knows_host("evil.example:8642")


def test_token_is_taken_from_the_header_alone() -> None:
    assert HERE.admits({"authorization": "Bearer secret"})
    for wrong in (
        "",
        "Bearer",
        "Bearer ",
        "Bearer secre",
        "Bearer secret2",
        "Bearer sécret",
        "Basic secret",
        "secret",
    ):
        assert not HERE.admits({"authorization": wrong})
    assert not HERE.admits({"cookie": "token=secret"})


def test_only_the_pages_own_requests_act() -> None:
    own = {"host": "127.0.0.1:8642", "origin": "http://127.0.0.1:8642"}
    assert HERE.may_act(own)
    for origin in ("http://evil.example", "http://127.0.0.1:8643", "null", ""):
        assert not HERE.may_act({**own, "origin": origin})
    assert not HERE.may_act({"host": "127.0.0.1:8642"})


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_may_only_link_to_the_page(site: str) -> None:
    request = {"host": "127.0.0.1:8642", "sec-fetch-site": site}
    link = {**request, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert HERE.is_foreign(request, "/") and HERE.is_foreign(request, "/api/overview")
    assert HERE.is_foreign(link, "/api/overview") and not HERE.is_foreign(link, "/")
    assert HERE.is_foreign({**link, "sec-fetch-dest": "iframe"}, "/")


def test_long_queries_are_refused_before_they_are_read() -> None:
    assert not is_too_long(b"&".join([b"id=0123456789abcdef"] * 50))
    assert is_too_long(b"&" * 200) and is_too_long(b"x" * 16_001)


def test_loopback_is_told_from_other_addresses() -> None:
    assert is_loopback("::1") and not is_loopback("0.0.0.0") and not is_loopback("example.org")
