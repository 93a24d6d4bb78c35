"""Machines that a wish leaves open: each by itself for a scout, and in the order of what scouts measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hostler.backends.base import PACES, MachinePaces
from hostler.backends.gce.wish import chosen, wishes
from hostler.backends.project_file import load_project
from hostler.errors import SpecError
from hostler.money import tariff
from hostler.spec.project import Fleet

CHEAP = Fleet("cheap", "gce", 2, options={"zones": ("us",), "gpu": ("T4:1", "L4:1", "A100:1"), "spot": True})


def measured(fleet: Fleet, work: str = "a run", **seconds: float) -> Fleet:
    return replace(fleet, known={PACES: MachinePaces(work, seconds)})


def order(fleet: Fleet) -> list[str]:
    return list(dict.fromkeys(one.gpu for one in chosen.tried(fleet)))


def test_each_machine_of_a_wish_becomes_its_own_wish() -> None:
    found = chosen.machines(CHEAP)
    assert list(found) == ["T4", "L4", "A100"]  # the cheapest first
    for name, one in found.items():
        assert one.name == f"cheap:{name}" and wishes.is_wish(one) and one.workers == 2
        assert {each.gpu for each in chosen.tried(one)} == {name}
        assert {each.region.partition("-")[0] for each in chosen.tried(one)} == {"us"}
    assert (
        chosen.machines(replace(CHEAP, options={"zones": ("us-east1-b",), "machine": "n2-standard-4"})) == {}
    )


def test_machines_of_any_type_are_named_by_their_types() -> None:
    given = {"zones": ("us-central1",), "machine": "any", "gpu": ("T4:1",), "cpus": "4"}
    found = chosen.machines(replace(CHEAP, options=given))
    assert "n1-standard-4:T4:1" in found and len(set(found)) == len(found)
    assert found["n1-standard-4:T4:1"].options["gpu"] == ("T4:1",)
    plain = chosen.machines(replace(CHEAP, options={"cpus": "8", "memory": "32GB"}))
    assert "e2-standard-8" in plain and plain["e2-standard-8"].options["zones"] == ("any",)
    assert {one.machine for one in chosen.tried(plain["e2-standard-8"])} == {"e2-standard-8"}


def test_launch_takes_the_machine_that_was_measured_cheapest_first() -> None:
    assert order(CHEAP)[:2] == ["T4", "L4"]
    quick = measured(CHEAP, T4=9000.0, L4=600.0)
    assert order(quick)[:2] == ["L4", "T4"]  # an hour of it costs more, a run less
    assert chosen.narrowed(quick).options["machine"] == "g2-standard-8"
    assert order(measured(CHEAP, A100=1.0, L4=600.0, T4=9000.0)) == ["A100", "L4", "T4"]
    assert order(measured(CHEAP, L4=600.0)) == order(CHEAP)  # nothing to compare it with


def test_price_of_a_fleet_stands_over_the_table_when_compared() -> None:
    same = replace(measured(CHEAP, T4=100.0, L4=90.0), price=1.0)
    assert order(same)[0] == "L4"
    assert order(replace(same, price=None))[0] == "T4"


def test_machines_of_a_wish_are_shown_at_its_own_price() -> None:
    found, known = tariff.price(replace(CHEAP, price=0.4), 2), chosen.price(CHEAP, 2)
    assert found.worker == found.usual == 0.4 and "`price`" in found.source
    assert [one.machine for one in found.offers] == [one.machine for one in known.offers]
    assert {one.price for one in found.offers} == {0.4} and found.left_out == known.left_out
    assert max(one.gpu_memory for one in found.offers) > 30e9  # a run may outgrow its GPU there, too
    fixed = Fleet("burst", "gce", 2, price=0.4, options={"machine": "n2-standard-4"})
    assert tariff.price(fixed, 2).offers == () and not found.mixed
    both = replace(CHEAP, options={**CHEAP.options, "mix": True})
    assert tariff.price(both, 2).mixed and tariff.price(replace(both, price=0.4), 2).mixed


@pytest.mark.parametrize("work", ["a run", "1000 steps"])
def test_measured_costs_are_told_with_the_price(work: str) -> None:
    found = chosen.price(measured(CHEAP, work, T4=9000.0, L4=600.0), 2)
    assert found.measured.startswith(f"in the order of what {work} costs there, as scouted: L4 "), found
    assert found.usual == next(one.price for one in found.offers if one.machine == "g2-standard-8")
    assert chosen.price(CHEAP, 2).measured == ""


@pytest.mark.parametrize(
    ("given", "zones"),
    [("US", ("us",)), ("us, europe-west4", ("us", "europe-west4")), (["US-East1-b"], ("us-east1-b",))],
)
def test_places_are_read_as_a_person_writes_them(tmp_path: Path, given: object, zones: object) -> None:
    fleet = {"backend": "gce", "zones": given, "exclude_zones": "US-West1", "gpu": ["L4:1"]}
    (tmp_path / "hostler.yaml").write_text(json.dumps({"name": "p", "fleets": {"cheap": fleet}}))
    found = load_project(tmp_path / "hostler.yaml").fleets["cheap"].options
    assert found["zones"] == zones and found["exclude_zones"] == ("us-west1",)


@pytest.mark.parametrize("gpu", [[], [4], {"L4": 1}])
def test_list_of_no_gpu_is_one_line(tmp_path: Path, gpu: object) -> None:
    fleet = {"backend": "gce", "zones": "us", "gpu": gpu}
    (tmp_path / "hostler.yaml").write_text(json.dumps({"name": "p", "fleets": {"cheap": fleet}}))
    with pytest.raises(
        SpecError, match=r"fleets.cheap.gpu: .* names no GPU \(like T4:1, or \[L4:1, T4:1\]\)"
    ):
        load_project(tmp_path / "hostler.yaml")
