"""What is said about money before a launch, word for word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostler import settings
from hostler.backends.prices import FleetPrice, PriceOffer, ZonePrice
from hostler.cli.run import pricing
from hostler.cli.run.pricing import Outlay
from hostler.errors import UsageError
from hostler.money import funding
from hostler.money.tariff import Asked, Funded
from hostler.spec.job import Budget, Job
from hostler.spec.project import Fleet
from hostler.spec.units import show_money

JOB = Job(name="lr-search", command=("x",), budget=Budget(cost=50))
ZONES = (ZonePrice("us-central1-a", 0.86, 0.52), ZonePrice("us-south1-b", None, 0.6))
GOOGLE = FleetPrice(8, 0.6, "Google's prices of 2026-08-21", ZONES, True)


def test_price_table_has_a_line_for_each_zone() -> None:
    asked = Asked(Fleet("burst", "gce", workers=8), GOOGLE, (JOB,))
    found = Outlay(asked, Funded("burst/1", 37500.0, 0.0, {"lr-search": 50.0}))
    assert list(pricing.lines(found)) == [
        "  burst: an hour of one worker (of all 8), disk included; spot",
        "    zone                    on demand                spot",
        "    us-central1-a         0.86 (6.88)         0.52 (4.16)",
        "    us-south1-b                     -         0.60 (4.80)",
        "  burst: 8 workers at 0.60 an hour, 4.80 in all (Google's prices of 2026-08-21)",
        "  gone after 10h 25m at the latest, which takes 50.00 of lr-search's budget",
    ]
    said = pricing.as_json(found)
    assert (said["per_hour"], said["seconds"], said["reserves"]) == (4.8, 37500, {"lr-search": 50})
    assert said["zones"][1] == {"zone": "us-south1-b", "on_demand": None, "spot": 0.6}


def test_offers_are_shown_in_order_with_those_left_out() -> None:
    offers = tuple(PriceOffer(f"n2-standard-{n}", "us-east1 (bc)", n < 9, n / 10) for n in range(1, 11))
    price = FleetPrice(2, 1.0, "x", spot="prefer", offers=offers, left_out=("us-west1: `exclude_zones`",))
    lines = list(pricing.lines(Outlay(Asked(Fleet("burst", "gce"), price, ()))))
    assert lines[1] == "    n2-standard-1  us-east1 (bc)  spot              0.10 (0.20)"
    assert lines[9:11] == ["    and 2 more, up to 1.00", "    left out: us-west1: `exclude_zones`"]
    assert lines[-1] == "  burst: 2 workers at 1.00 an hour, 2.00 in all at most (x)"
    assert price.usual == 0.1
    said = pricing.as_json(Outlay(Asked(Fleet("burst", "gce"), price, ())))
    assert said["offers"][0]["machine"] == "n2-standard-1" and said["left_out"]
    assert lines[0].endswith("; the first that is there")
    both = Outlay(Asked(Fleet("burst", "gce"), replace(price, mixed=True), ()))
    assert next(pricing.lines(both)).endswith("; some of each machine")


@pytest.mark.parametrize(("days", "said"), [(None, False), (90, False), (91, True)])
def test_old_table_is_said_where_prices_are(days: int | None, said: bool) -> None:
    asked = Asked(Fleet("burst", "gce"), replace(GOOGLE, days=days), ())
    assert any("91 days old: hostler prices update" in line for line in pricing.lines(Outlay(asked))) is said


def test_many_zones_are_cut_short() -> None:
    zones = tuple(ZonePrice(f"z-{n}", 1.0, 0.5) for n in range(20))
    asked = Asked(Fleet("burst", "gce"), FleetPrice(1, 0.5, "x", zones, "prefer"), ())
    lines = list(pricing.lines(Outlay(asked)))
    assert lines[0].endswith("spot, else on demand")
    assert "    and 12 more expensive zones" in lines


def test_a_refusal_is_shown_with_what_to_do() -> None:
    asked = Asked(Fleet("lab", "ssh"), FleetPrice(2, 1.0, "x"), (JOB,))
    lines = list(pricing.lines(Outlay(asked, refused=UsageError("used up", "allow more"))))
    assert lines[-1] == "  → used up (allow more)"


def test_free_or_unpriced_launch_asks_nothing() -> None:
    free = Outlay(Asked(Fleet("desk", "local", price=0), FleetPrice(2, 0.0, "x"), ()))
    assert pricing.agreed(free, yes=False)
    assert list(pricing.lines(free)) == []
    here = Outlay(Asked(Fleet("here", "local"), FleetPrice(1), (), own=True))
    assert pricing.agreed(here, yes=False)
    assert not funding.counts(here.asked)


def test_money_is_shown_to_the_cent_or_two_digits() -> None:
    amounts = (12.3456, 0.1, 0.0123, 0.000026, -0.00045, -3.5, 1e-9, 0.0, None)
    shown = ["12.35", "0.10", "0.012", "0.000026", "-0.00045", "-3.50", "0.00", "0.00", "-"]
    assert [show_money(amount) for amount in amounts] == shown


def test_highest_cost_is_shown_without_a_budget() -> None:
    asked = Asked(Fleet("burst", "gce", workers=8), GOOGLE, (JOB,))
    found = Outlay(asked, Funded("burst/1", 36000 - settings.timing().cap_margin, 0.0))
    assert list(pricing.lines(found))[-1].endswith("at the latest, for 48.00 at most")
