"""The emulator's decisions without a machine: zones, shortages, quotas, time, money, routes."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from hostler.emulators.gce.api.links import Scope, after, path_of
from hostler.emulators.gce.api.refusal import Refusal
from hostler.emulators.gce.api.routes import route
from hostler.emulators.gce.catalog import machine_type
from hostler.emulators.gce.clock import wall
from hostler.emulators.gce.faults import Faults
from hostler.emulators.gce.machine.group import CREATING, DELETING, NONE, Group, Member, choose_zone, surplus
from hostler.emulators.gce.meter import Usage, bill
from hostler.emulators.gce.stock import Need, Shortage, Stock, gpu_metric
from hostler.emulators.gcs.faults import LOST

REGION = Scope("p", "regions", "us-central1")
ZONES = ["us-central1-a", "us-central1-b", "us-central1-c"]


def group(size: int, *members: Member, shape: str = "ANY") -> Group:
    body = {"name": "g", "targetSize": size, "distributionPolicy": {"targetShape": shape}}
    return Group(REGION, body, list(members))


def need(zone: str = ZONES[0], *, spot: bool = True, name: str = "g2-standard-4") -> Need:
    kind = machine_type(name)
    assert kind is not None
    gpus = ((kind.accelerator, kind.count),) if kind.accelerator else ()
    return Need(zone, kind, spot, gpus, 20.0)


def test_shrinking_group_drops_never_run_machines_then_the_youngest() -> None:
    old, new, never = Member("old", "a", NONE), Member("new", "a", NONE), Member("never", "a", CREATING)
    leaving = Member("leaving", "a", DELETING)
    assert surplus(group(3, old, never, new, leaving)) == []
    assert surplus(group(2, old, never, new, leaving)) == [never]
    assert surplus(group(1, old, never, new, leaving)) == [never, new]


def test_any_shape_group_takes_the_zone_that_failed_longest_ago() -> None:
    found = group(4, Member("x", ZONES[0], NONE))
    assert choose_zone(found, ZONES) == ZONES[0]
    found.failed_in = {ZONES[0]: 5.0}
    assert choose_zone(found, ZONES) == ZONES[1]
    found.failed_in = {ZONES[0]: 5.0, ZONES[1]: 4.0, ZONES[2]: 6.0}
    assert choose_zone(found, ZONES) == ZONES[1]


def test_an_even_group_spreads_whatever_failed() -> None:
    found = group(4, Member("x", ZONES[0], NONE), shape="EVEN")
    found.failed_in = {ZONES[1]: 5.0}
    assert choose_zone(found, ZONES) == ZONES[1]


def test_shortage_meets_its_zone_its_type_and_optionally_only_spot() -> None:
    assert Shortage(ZONES[0]).meets(need(spot=False))
    assert not Shortage(ZONES[0], spot_only=True).meets(need(spot=False))
    assert not Shortage(ZONES[0], "e2-small").meets(need())
    assert not Shortage(ZONES[1]).meets(need())


def test_full_zone_and_full_quota_refuse_the_next_machine() -> None:
    stock = Stock(places={ZONES[0]: 1})
    assert stock.refuse(need(), []) is None
    full = stock.refuse(need(), [need()])
    assert full is not None and full.code == "ZONE_RESOURCE_POOL_EXHAUSTED"
    stock = Stock(limits={("", "GPUS_ALL_REGIONS"): 1.0})
    over = stock.refuse(need("us-east1-b"), [need()])
    assert over is not None and over.code == "QUOTA_EXCEEDED" and "globally" in over.message
    stock = Stock(limits={("us-central1", "PREEMPTIBLE_CPUS"): 4.0})
    assert stock.refuse(need(spot=False), [need()]) is None
    assert stock.refuse(need("us-east1-b"), [need()]) is None
    near = stock.refuse(need(ZONES[1]), [need()])
    assert near is not None and "PREEMPTIBLE_CPUS" in near.message
    stock = Stock(limits={("us-central1", "PREEMPTIBLE_CPUS"): 0.0, ("us-central1", "CPUS"): 4.0})
    assert stock.refuse(need(), []) is None
    plain = stock.refuse(need(ZONES[1]), [need()])
    assert plain is not None and "'CPUS'" in plain.message


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("nvidia-tesla-t4", "NVIDIA_T4_GPUS"),
        ("nvidia-l4", "NVIDIA_L4_GPUS"),
        ("nvidia-a100-80gb", "NVIDIA_A100_80GB_GPUS"),
        ("nvidia-h100-80gb", "NVIDIA_H100_GPUS"),
    ],
)
def test_accelerators_are_counted_under_googles_names(kind: str, metric: str) -> None:
    assert gpu_metric(kind) == metric


@pytest.mark.parametrize(
    "text", ["2026-11-15T12:00:00Z", "2026-11-15T04:00:00-08:00", "2026-11-15T12:00:00.000000000Z"]
)
def test_moments_are_read_in_any_zone_and_to_any_digit(text: str) -> None:
    assert wall(text) == datetime(2026, 11, 15, 12, tzinfo=timezone.utc).timestamp()


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(Refusal, match="RFC 3339"):
        wall("tomorrow")


def test_bill_adds_up_hours_at_the_given_prices() -> None:
    labels = (("fleet", "x"),)
    used = [
        Usage("machine", "m", "z", "e2-small", True, (), 0, labels, 0, 7200),
        Usage("disk", "d", "z", "pd-ssd", False, (), 20, (), 0, 1800),
    ]
    found = bill(used, lambda one: 0.25 if one.spot else 9.0, lambda one: one.gb * 0.1)
    assert found.total == pytest.approx(0.5 + 1.0)
    assert found.of("fleet", "x") == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("verb", "path", "method", "place", "name"),
    [
        ("GET", "/compute/v1/projects/p", "projects.get", "", ""),
        ("GET", "/projects/p/zones", "zones.list", "", ""),
        ("GET", "/compute/v1/projects/p/zones/z", "zones.get", "z", ""),
        ("POST", "/compute/v1/projects/p/zones/z/instances", "instances.insert", "z", ""),
        (
            "GET",
            "/compute/v1/projects/p/zones/z/instances/i/serialPort",
            "instances.getSerialPortOutput",
            "z",
            "i",
        ),
        (
            "DELETE",
            "/compute/v1/projects/p/regions/r/instanceGroupManagers/g",
            "regionInstanceGroupManagers.delete",
            "r",
            "g",
        ),
        (
            "POST",
            "/compute/v1/projects/p/zones/z/instanceGroupManagers/g/resize",
            "instanceGroupManagers.resize",
            "z",
            "g",
        ),
        ("POST", "/compute/v1/projects/p/global/operations/o/wait", "globalOperations.wait", "", "o"),
        ("GET", "/compute/v1/projects/p/global/images/family/f", "images.getFromFamily", "", "f"),
        ("GET", "/compute/v1/projects/p/aggregated/disks", "disks.aggregatedList", "", ""),
        ("POST", "/compute/v1/projects/p/regions/r/advice/capacity", "advice.capacity", "r", ""),
    ],
)
def test_a_request_is_a_method_of_googles_document(
    verb: str, path: str, method: str, place: str, name: str
) -> None:
    found = route(verb, path)
    assert found is not None
    assert (found.method, found.scope.place, found.name) == (method, place, name)


def test_what_is_not_a_path_of_the_api_is_none() -> None:
    assert route("GET", "/storage/v1/b") is None


def test_addresses_are_read_whole_or_in_part() -> None:
    whole = "https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/i"
    assert (path_of(whole), after(whole, "zones")) == ("projects/p/zones/z/instances/i", "z")
    assert (path_of("zones/z/instances/i"), after("global/x", "zones")) == ("zones/z/instances/i", "")


def test_fault_meets_its_methods_as_often_as_asked() -> None:
    faults = Faults()
    faults.next(LOST, "*InstanceGroupManagers.insert", times=2)
    met = [faults.choose(name) for name in ("instances.insert", *["regionInstanceGroupManagers.insert"] * 3)]
    assert met == [None, LOST, LOST, None] and faults.met == 2
