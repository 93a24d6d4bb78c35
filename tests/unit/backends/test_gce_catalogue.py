"""A price table made of the Cloud Billing catalogue."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.backends.gce import catalogue, prices
from hostler.backends.gce.prices import Kind, PriceTable, RegionPrice
from hostler.emulators.gce.api import cloudbilling
from hostler.errors import CloudError

TODAY = date(2026, 11, 18)
EMULATED = cloudbilling.BillingCatalogue(lambda token: True)


def sku(words: str, group: str = "CPU", usage: str = "OnDemand", unit: str = "h", **price: Any) -> Any:
    steps = [{"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", **price}}]
    return {
        "description": words,
        "category": {"resourceGroup": group, "usageType": usage},
        "serviceRegions": ["us-east1", "us-west1"],
        "pricingInfo": [{"pricingExpression": {"usageUnit": unit, "tieredRates": steps}}],
    }


@pytest.mark.parametrize(
    ("words", "group", "part"),
    [
        ("N1 Predefined Instance Core running in Americas", "N1Standard", ("core", "N1 Predefined")),
        ("Spot Preemptible N2 Instance Ram running in Iowa", "RAM", ("ram", "N2")),
        ("Compute optimized Core running in Americas", "CPU", ("core", "Compute optimized")),
        ("N2 Custom Instance Core running in Americas", "CPU", None),
        ("N2 Sole Tenancy Instance Core running in Americas", "CPU", None),
        ("Nvidia Tesla A100 GPU running in Americas", "GPU", ("gpu", "A100")),
        ("Nvidia Tesla A100 80GB GPU attached to Preemptible VMs running in X", "GPU", ("gpu", "A100-80GB")),
        ("Nvidia H100 80GB Plus GPU running in Sydney", "GPU", ("gpu", "H100-MEGA")),
        ("Nvidia B200 (1 gpu slice) running in Iowa", "GPU", ("gpu", "B200")),
        ("Licensing Fee for Windows", "Google", None),
    ],
)  # fmt: skip
def test_words_of_a_sku_name_its_part(words: str, group: str, part: tuple[str, str] | None) -> None:
    assert catalogue.part_of(sku(words, group)) == part
    assert catalogue.part_of(sku(words, group, usage="Commit1Yr")) is None


def test_price_is_units_and_nanos_of_the_newest_entry() -> None:
    found = sku("x", units="2", nanos=500_000_000)
    found["pricingInfo"].insert(0, sku("x", units="9")["pricingInfo"][0])
    assert catalogue.hourly(found, "h") == 2.5
    assert catalogue.hourly(found, "GiBy.h") is None
    assert catalogue.hourly({"description": "x"}, "h") is None
    for units in (10**309, "many", [2]):
        assert catalogue.hourly(sku("x", units=units), "h") is None


@pytest.mark.parametrize("price", [{}, {"units": "0", "nanos": 0}, {"units": "-5"}, {"nanos": -1}])
def test_part_that_costs_nothing_or_less_has_no_price(price: dict[str, Any]) -> None:
    """A free machine no cap would end; one below nothing would make the written table unreadable."""
    assert catalogue.hourly(sku("x", **price), "h") is None
    assert catalogue.rates([sku("Nvidia Tesla T4 GPU running in A", "GPU", **price)]) == {}


def test_catalogue_that_repeats_a_page_for_ever_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Repeating:
        asked = 0

        def get(self, path: str, **query: Any) -> Any:
            self.asked += 1
            assert self.asked < 10, "it asks for ever"
            return {"skus": [sku("x", units="1")], "nextPageToken": "same"}

    client = Repeating()
    monkeypatch.setattr(catalogue, "client_without_project", lambda *words: client)
    with pytest.raises(CloudError, match="same page"):
        list(catalogue.skus())


def test_machine_costs_its_cores_and_memory_where_both_are_sold() -> None:
    known = PriceTable(
        "2026-01-01",
        {
            "n2-standard-4": Kind(
                "n2-standard-4",
                4,
                16,
                {"us-east1": RegionPrice("bc", 9, 9), "eu-x1": RegionPrice("a", 9, 9)},
            )
        },
        {"T4": Kind("T4", rates={"us-west1": RegionPrice("b", 9, 9), "eu-x1": RegionPrice("a", 9, 9)})},
    )
    found = catalogue.rates(
        [
            sku("N2 Instance Core running in A", units="1"),
            sku("N2 Instance Ram running in A", "RAM", unit="GiBy.h", units="0", nanos=250_000_000),
            sku("Nvidia Tesla T4 GPU running in A", "GPU", units="3"),
        ]
    )
    made = catalogue.table(found, known, TODAY)
    assert made.machines["n2-standard-4"].rates == {"us-east1": RegionPrice("bc", 8.0, None)}
    assert made.gpus["T4"].rates == {"us-west1": RegionPrice("b", 3.0, None)}


def test_machine_whose_gpu_is_not_sold_is_left_out() -> None:
    """It would cost its cores alone: a cap would let it run for days."""
    own = prices.load(prices.OWN)
    named = [body for body in EMULATED.skus() if catalogue.part_of(body) != ("gpu", "L4")]
    made = catalogue.table(catalogue.rates(named), own, TODAY)
    assert "L4" not in made.gpus and not any(name.startswith("g2-") for name in made.machines)
    assert "a2-highgpu-1g" in made.machines and "n2-standard-8" in made.machines


costs = st.none() | st.floats(min_value=0, max_value=1000).map(lambda cost: round(cost, 5))
places = st.dictionaries(
    st.sampled_from(["us-east1", "eu-x1"]), st.builds(RegionPrice, st.just("ab"), costs, costs), min_size=1
)


@given(places, places)
def test_table_as_text_is_read_back_as_it_was(one: dict[str, Any], two: dict[str, Any]) -> None:
    table = PriceTable("2026-11-18", {"n2-x": Kind("n2-x", 4, 3.75, one)}, {"T4": Kind("T4", rates=two)})
    path = Path(".table")
    text = catalogue.as_text(table)
    assert prices.parse(text.splitlines(), path) == table


def test_catalogue_of_the_emulator_prices_its_own_regions() -> None:
    made = catalogue.table(catalogue.rates(EMULATED.skus()), prices.load(prices.OWN), TODAY)
    rate = made.machines["n2-standard-8"].rates["us-central1"]
    assert rate.on_demand == pytest.approx(0.38847, abs=1e-4)  # as the table that comes with hostler has it
    assert rate.spot == pytest.approx(0.38847 * cloudbilling.SPOT, abs=1e-4)
    assert set(made.machines["g2-standard-8"].rates) <= set(cloudbilling.FACTORS)
    assert "n4-standard-2" not in made.machines and "A100" in made.gpus
