"""What a fleet costs an hour, by its own price or by Google's table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler.backends.gce import prices
from hostler.backends.gce.prices import Kind, PriceTable, RegionPrice
from hostler.backends.prices import FleetPrice, ZonePrice
from hostler.errors import UsageError
from hostler.money import tariff
from hostler.spec.project import Fleet

TABLE = PriceTable(
    "2026-01-02",
    {
        "n1-standard-4": Kind(
            "n1-standard-4",
            4,
            15,
            {"us-east1": RegionPrice("bc", 0.2, 0.05), "eu-x1": RegionPrice("a", 0.3, 0.1)},
        ),
        "g2-standard-24": Kind("g2-standard-24", 24, 96, {"us-east1": RegionPrice("c", 1.0, 0.5)}),
    },
    {
        "T4": Kind("T4", rates={"us-east1": RegionPrice("c", 0.35, 0.2)}),
        "L4": Kind("L4", rates={"us-east1": RegionPrice("bc", 0.6, 0.3)}),
    },
)


def of(workers: int = 2, **options: Any) -> FleetPrice:
    fleet = Fleet("burst", "gce", workers=workers, options=options)
    return prices.by_table(fleet, workers, TABLE)


def test_a_price_of_its_own_stands_over_the_table() -> None:
    found = tariff.price(Fleet("burst", "gce", price=0.25, options={"machine": "n1-standard-4"}), 2)
    assert (found.worker, found.hourly, found.zones) == (0.25, 0.5, ())


@pytest.mark.parametrize("backend", ["gce", "slurm", "elsewhere"])
def test_without_price_and_machine_nobody_knows(backend: str) -> None:
    assert tariff.price(Fleet("burst", backend), 2).hourly is None


def test_a_vm_costs_its_machine_its_gpus_and_its_disk() -> None:
    fleet = Fleet("burst", "gce", options={"machine": "n1-standard-4", "gpu": "T4:2", "disk": int(73e9)})
    found = prices.by_table(fleet, 3, TABLE, disk_price=0.1)
    assert found.zones == (ZonePrice("us-east1-c", pytest.approx(0.91), pytest.approx(0.46)),)
    assert found.worker == pytest.approx(0.46)  # spot is what a fleet gets unless it says otherwise
    assert found.hourly == pytest.approx(1.38)


def test_a_machine_that_comes_with_gpus_costs_them() -> None:
    assert of(machine="g2-standard-24", spot=False).worker == pytest.approx(1.0 + 2 * 0.6)


def test_machine_is_not_priced_without_its_own_gpu() -> None:
    cut = replace(TABLE, gpus={"T4": TABLE.gpus["T4"]})
    with pytest.raises(UsageError, match="g2-standard-24's GPU, L4, is not known"):
        prices.by_table(Fleet("burst", "gce", options={"machine": "g2-standard-24"}), 1, cut)


def test_cap_counts_with_the_dearest_zone_and_provisioning_model() -> None:
    assert of(machine="n1-standard-4").worker == 0.1
    assert of(machine="n1-standard-4", zones=("us-east1-b",)).worker == 0.05
    assert of(machine="n1-standard-4", zones=("us-east1-b",), spot="prefer").worker == 0.2
    assert of(machine="n1-standard-4", spot=False).worker == 0.3


def test_region_stands_for_its_zones_without_the_excluded_ones() -> None:
    found = of(machine="n1-standard-4", zones=("us-east1",), exclude_zones=("us-east1-b",))
    assert [one.zone for one in found.zones] == ["us-east1-c"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"machine": "n1-standart-4"}, "did you mean 'n1-standard-4'?"),
        ({"machine": "zzz"}, "`price:` of one worker"),
        (
            {"machine": "n1-standard-4", "zones": ("us-eats1-b",)},
            "no zone 'us-eats1-b' with n1-standard-4 is known (nearest: us-east1-b, ",
        ),
        ({"machine": "n1-standard-4", "gpu": "T44"}, "did you mean 'T4'?"),
        ({"machine": "n1-standard-4", "zones": ("eu-x1-a",), "exclude_zones": ("eu-x1",)}, "excluded"),
    ],
)
def test_what_is_not_known_is_said_with_the_nearest_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match="burst") as met:
        of(**options)
    assert said in str(met.value)


def test_a_custom_machine_costs_at_most_its_larger_part() -> None:
    assert of(machine="n1-custom-4-15360", spot=False, zones=("us-east1-b",)).worker == pytest.approx(0.21)
    assert of(machine="custom-2-30720", spot=False, zones=("us-east1-b",)).worker == pytest.approx(0.42)


@pytest.mark.parametrize(
    ("machine", "gpus"),
    [
        ("a2-highgpu-4g", ("A100", 4)),
        ("a2-ultragpu-1g", ("A100-80GB", 1)),
        ("a3-megagpu-8g", ("H100-MEGA", 8)),
        ("a3-ultragpu-8g-nolssd", ("H200", 8)),
        ("g2-standard-8", ("L4", 1)),
        ("g2-standard-96", ("L4", 8)),
        ("g4-standard-6", ("RTXPRO6000", 0.125)),
        ("n1-standard-4", ("", 0)),
    ],
)
def test_machines_with_gpus_of_their_own(machine: str, gpus: tuple[str, float]) -> None:
    assert prices.own_gpus(machine) == gpus


def test_shipped_table_has_a_price_for_every_machine_it_names() -> None:
    table = prices.load()
    assert (table.date, len(table.machines), len(table.gpus)) == ("2026-08-21", 82, 12)
    for name in table.machines:
        found = prices.by_table(Fleet("f", "gce", options={"machine": name, "spot": "prefer"}), 1, table, 0.1)
        assert found.worker and found.worker > 0, name
    fleet = Fleet("f", "gce", options={"machine": "g2-standard-8", "zones": ("us-central1-a",)})
    [zone] = prices.by_table(fleet, 8, table).zones
    assert zone == ZonePrice(
        "us-central1-a", pytest.approx(0.853625, abs=1e-4), pytest.approx(0.512, abs=1e-3)
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("machine x", "the line is cut short"),
        ("machine x 4 16 us:a:-1:0", "-1 is not a price"),
        ("gpu T4 us:a:nan:1", "nan is not a price"),
        ("gpu T4 us:a:x:1", "'x' is not a number"),
        ("motor y", "'motor' is neither machine, gpu nor date"),
        ("gpu T4 us:a:1", "'us:a:1' is not REGION:ZONES:ON_DEMAND:SPOT"),
        ("machine x 0 16 us:a:1:0", "0 is not an amount"),  # of which a machine of one's own would be a part
        ("machine x 4 inf us:a:1:0", "inf is not an amount"),
    ],
)
def test_own_table_with_a_mistake_is_refused_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "prices.txt"
    path.write_text(f"date 2026-01-01\n{line}\n")
    with pytest.raises(UsageError, match=rf"prices\.txt:2: {re.escape(said)}"):
        prices.load(path)


def test_a_table_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none: No such file or directory.*HOSTLER_PRICES"):
        prices.load(tmp_path / "none")
