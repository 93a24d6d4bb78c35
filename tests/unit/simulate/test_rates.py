"""Rates, times and stockouts as people write them; and what is none of them."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from hostler.errors import UsageError
from hostler.simulate import rates, stock, times
from hostler.simulate.stock import Outage
from hostler.simulate.times import VaryingSeconds


@pytest.mark.parametrize(
    ("text", "survive", "seconds"),
    [
        ("5%/h", 0.95, 3600),
        ("0.05/h", 0.95, 3600),
        ("20%/d", 0.8, 86400),
        ("50%/10m", 0.5, 600),
        ("1e-3/h", 0.999, 3600),
        ("5%", 0.95, 3600),
    ],
)
def test_rate_is_the_share_gone_after_its_span(text: str, survive: float, seconds: float) -> None:
    assert math.exp(-rates.rate(text).hazard * seconds) == pytest.approx(survive)


@pytest.mark.parametrize("text", ["0", "0%", "none", "0/h"])
def test_a_rate_of_nothing_takes_nothing_away(text: str) -> None:
    assert rates.rate(text).hazard == 0


@pytest.mark.parametrize("text", ["100%/h", "1/h", "250%/d", "100.0 % / h", "100%", "1"])
def test_rate_of_100_percent_is_refused_with_an_alternative(text: str) -> None:
    with pytest.raises(UsageError, match="no run would ever end") as caught:
        rates.rate(text)
    assert "50%/10m" in caught.value.hint


@pytest.mark.parametrize("text", ["", "often", "5%/parsec", "5/", "/h", "nan/h", "5%/0h", "1.2.3/h"])
def test_what_is_no_rate_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(UsageError, match="is not a rate") as caught:
        rates.rate(text)
    assert "5%/h" in caught.value.hint


def test_a_rate_below_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="below zero"):
        rates.rate("-5%/h")


def test_a_rate_may_be_one_fleets_alone() -> None:
    found = rates.named_rates(["5%/h", "b=0"], ["a", "b"])
    assert found["a"].hazard > 0 and found["b"].hazard == 0
    with pytest.raises(UsageError, match="'c' is not a simulated fleet"):
        rates.named_rates(["c=5%/h"], ["a", "b"])
    with pytest.raises(UsageError) as told:  # each size of a fleet has its name
        rates.named_rates(["c=5%/h"], ["a", "a", "b"])
    assert told.value.hint == "choose from: a, b"


def test_times_are_one_or_anything_between_two() -> None:
    assert times.times("40m", "--run-time") == VaryingSeconds((), 2400, 2400)
    assert times.times("30m-1h", "--run-time") == VaryingSeconds((), 1800, 3600)
    chance = random.Random(1)
    drawn = [VaryingSeconds((), 10, 20).draw(chance) for _ in range(1000)]
    assert 10 <= min(drawn) < 11 and 19 < max(drawn) <= 20
    assert {VaryingSeconds((3, 5)).draw(chance) for _ in range(100)} == {3, 5}


@pytest.mark.parametrize("text", ["soon", "1h-30m", "-5m", "40m-", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--run-time"):
        times.times(text, "--run-time")


def test_intervals_are_a_list_and_none_is_nothing() -> None:
    assert times.intervals("5m, 15m,1h,5m") == (300, 900, 3600)
    for text in ("0", "5m,,1h", "5m-10m", "x"):
        with pytest.raises(UsageError):
            times.intervals(text)


def test_stockouts_are_windows_or_a_risk_with_a_length() -> None:
    found = stock.stockouts(["us-central1-a@1h-3h", "*@0-30m", "10%/d:2h"])
    assert found.windows == (Outage("us-central1-a", 3600, 10800), Outage("*", 0, 1800))
    assert found.lasts == 7200 and math.exp(-found.rate.hazard * 86400) == pytest.approx(0.9)


@pytest.mark.parametrize("text", ["10%/d", "us-central1-a@3h-1h", "us-central1-a", "100%/d:1h", "10%/d:0s"])
def test_what_is_no_stockout_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        stock.stockouts([text])


def test_zone_exhausted_by_chance_is_out_at_its_rate() -> None:
    found = stock.stockouts(["50%/d:6h"])
    days = 20_000
    windows = stock.windows_of(found, ["z"], random.Random(3), days * 86400)["z"]
    out = sum(min(one.ends, days * 86400) - one.begins for one in windows)
    hazard = math.log(2) / 86400
    assert out / (days * 86400) == pytest.approx(hazard * 21600 / (1 + hazard * 21600), rel=0.05)
    assert all(a.ends <= b.begins for a, b in pairwise(windows))


def test_it_is_known_when_a_zone_has_some_again() -> None:
    windows = {"a": [Outage("a", 0, 10), Outage("a", 10, 30)], "b": [Outage("b", 5, 50)]}
    assert (
        stock.is_out(windows, "a", 0)
        and not stock.is_out(windows, "a", 30)
        and not stock.is_out(windows, "c", 0)
    )
    assert stock.back_at(windows, ["a", "b"], 7) == 30
    assert stock.back_at(windows, ["a", "b", "c"], 7) == 7
