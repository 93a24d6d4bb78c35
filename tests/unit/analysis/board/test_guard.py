"""Who may see the dashboard, and act through it."""

from __future__ import annotations

import pytest

from hostler.analysis.board.guard import Guard, is_loopback

HERE = Guard("127.0.0.1", 8642)
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


def test_beyond_loopback_addresses_and_given_names_are_known_and_other_names_are_not() -> None:
    assert OPEN.knows_host("192.168.1.7:8642")
    assert OPEN.knows_host("gpu.example.org:8642")
    assert not OPEN.knows_host("evil.example:8642")


def test_a_token_is_needed_where_there_is_one() -> None:
    assert HERE.admits(None)
    assert OPEN.admits("secret")
    for wrong in (None, "", "secre", "secret2", "sécret"):
        assert not OPEN.admits(wrong)


def test_only_the_pages_own_requests_act() -> None:
    good = {"host": "127.0.0.1:8642", "origin": "http://127.0.0.1:8642", "x-hostler-csrf": HERE.csrf}
    assert HERE.may_act(good)
    assert not HERE.may_act({**good, "origin": "http://evil.example"})
    assert not HERE.may_act({**good, "origin": "null"})
    assert not HERE.may_act({**good, "x-hostler-csrf": "guess"})
    assert not HERE.may_act({**good, "sec-fetch-site": "cross-site"})
    assert not HERE.may_act({k: v for k, v in good.items() if k != "origin"})
    assert not HERE.may_act({k: v for k, v in good.items() if k != "x-hostler-csrf"})


def test_every_dashboard_has_its_own_secret() -> None:
    assert Guard("127.0.0.1", 1).csrf != HERE.csrf
    assert is_loopback("::1") and not is_loopback("0.0.0.0") and not is_loopback("example.org")
