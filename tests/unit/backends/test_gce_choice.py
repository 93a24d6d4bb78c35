"""Machines for a wish: the cheapest first, and a reason for everything that was left out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.backends.base import Launch
from hostler.backends.gce import names as names_of
from hostler.backends.gce import plans, prices
from hostler.backends.gce import shape as shapes
from hostler.backends.gce.prices import Kind, PriceTable, RegionPrice
from hostler.backends.gce.wish import chosen, places, quotas, wishes
from hostler.backends.gce.wish.choice import Candidate, Candidates, choose, nearest
from hostler.backends.gce.wish.quotas import Quotas
from hostler.errors import UsageError
from hostler.spec.project import Fleet
from hostler.worker.run.larger_gpu import larger_comes

REGIONS = ("us-east1", "us-west1", "europe-west4", "asia-east1")
MACHINES = {
    "n1-standard-4": (4, 15), "n1-standard-8": (8, 30), "e2-standard-4": (4, 16), "n2-standard-16": (16, 64),
    "g2-standard-8": (8, 32), "g2-standard-24": (24, 96), "a2-highgpu-1g": (12, 85),
}  # fmt: skip
GPUS = ("T4", "L4", "A100")

amount = st.integers(10, 9000).map(lambda one: one / 1000)
cost = st.one_of(amount, amount, amount, st.none())  # mostly there is one
rate = st.builds(RegionPrice, st.sampled_from(["a", "bc", "abc"]), cost, cost)
rates = st.dictionaries(st.sampled_from(REGIONS), rate, min_size=2)
tables = st.builds(
    lambda machines, gpus: PriceTable(
        "2026-11-18",
        {name: Kind(name, *MACHINES[name], found) for name, found in zip(MACHINES, machines, strict=True)},
        {name: Kind(name, rates=found) for name, found in zip(GPUS, gpus, strict=True)},
    ),
    st.lists(rates, min_size=len(MACHINES), max_size=len(MACHINES)),
    st.lists(rates, min_size=len(GPUS), max_size=len(GPUS)),
)  # fmt: skip
names = ("any", "any", "us", "us", "europe", *REGIONS, "us-east1-b", "us-west1-a")
options = st.fixed_dictionaries(
    {"zones": st.lists(st.sampled_from(names), min_size=1, max_size=2).map(tuple)},
    optional={
        "gpu": st.lists(st.sampled_from(["T4:1", "L4:1", "L4:2", "A100:1"]), min_size=1).map(tuple),
        "cpus": st.sampled_from(["4", "8+", "16+"]),
        "memory": st.sampled_from(["16GB+", "32GB", "60GB+"]),
        "machine": st.sampled_from(["any", "n1-standard-4", "g2-standard-8"]),
        "exclude_zones": st.lists(st.sampled_from(["us-east1", "us-west1-a", "europe-west4-b"])).map(tuple),
        "spot": st.sampled_from([True, False, "prefer"]),
    },
)
METRICS = ("PREEMPTIBLE_NVIDIA_L4_GPUS", "NVIDIA_T4_GPUS", "CPUS")
HAS = frozenset(f"{region}-{letter}" for region in REGIONS[:3] for letter in "abc")
limits = st.builds(
    Quotas,
    st.sampled_from([frozenset(), HAS]),
    st.dictionaries(
        st.tuples(st.sampled_from(REGIONS), st.sampled_from(METRICS)),
        st.sampled_from([0.0, 1.0, 8.0]),
    ),
)  # fmt: skip


def wish_of(given: dict[str, Any]) -> wishes.MachineWish:
    return wishes.wish_of(Fleet("burst", "gce", options=given), set(REGIONS))


@settings(max_examples=60, deadline=None)
@given(tables, options, limits)
def test_candidates_are_by_price_and_fit_the_wish(table: PriceTable, asked: Any, known: Quotas) -> None:
    wish, found = wish_of(asked), choose(wish_of(asked), table, known, 0.001).found
    assert [one.price for one in found] == sorted(one.price for one in found)
    assert len({(one.machine, one.gpu, one.region, one.spot) for one in found}) == len(found)
    for one in found:
        check_fits(one, wish, table, asked)
        assert not known.lack(one.region, one.machine, one.cpus, one.gpu, one.gpus, spot=one.spot)
        assert not known.zones or set(one.zones) <= known.zones
    for gone in [one.zones[0] for one in found[:1]]:  # whatever is cheapest goes once it is excluded
        left = choose(replace(wish, out=wish.out | {gone}), table, known, 0.001).found
        assert gone not in {zone for one in left for zone in one.zones}


def check_fits(one: Candidate, wish: wishes.MachineWish, table: PriceTable, asked: dict[str, Any]) -> None:
    kind = table.machines[one.machine]
    assert not wish.gpus or (one.gpu, one.gpus) in wish.gpus
    assert wish.gpus or not one.gpu or wish.machine == one.machine
    assert wish.cpus is None or wish.cpus.holds(kind.vcpus)
    assert wish.memory is None or wish.memory.holds(kind.memory)
    assert wish.machine in ("", one.machine)
    assert wish.spot in (one.spot, "prefer")
    for zone in one.zones:
        assert any(places.lies_in(zone, place) for place in asked["zones"])
        assert not any(places.lies_in(zone, place) for place in asked.get("exclude_zones", ()))
        assert zone[-1] in kind.rates[one.region].zones
    narrow = chosen.narrowed(Fleet("burst", "gce", options=asked), one) if is_wish(asked) else None
    if narrow:  # the launch asks for the very machine, at the very price
        found = shapes.shape(narrow)
        assert (found.machine, found.gpu, found.gpus) == (one.machine, one.gpu, one.gpus)
        told = prices.by_table(narrow, 1, table).worker
        assert told == pytest.approx(one.price - 0.001, abs=2e-6)


def is_wish(asked: dict[str, Any]) -> bool:
    return wishes.is_wish(Fleet("burst", "gce", options=asked))


@settings(max_examples=60, deadline=None)
@given(tables, options, limits)
def test_machine_that_is_not_chosen_has_a_reason(table: PriceTable, asked: Any, known: Quotas) -> None:
    wish = wish_of(asked)
    made = choose(wish, table, known)
    for kind in table.machines.values():
        inside = shapes.inside_of(kind.name)
        cards = [inside] if inside[1] else list(wish.gpus) or [("", 0)]
        for gpu, count in cards:
            for zone, _ in prices.spread(kind):
                for spot in (True, False):
                    check_told(made, kind.name, gpu, count, zone, spot=spot)
    assert all(one.why for one in made.left_out)


def check_told(made: Candidates, machine: str, gpu: str, count: int, zone: str, *, spot: bool) -> None:
    """Each machine in each zone is a candidate or left out, never both."""
    mark = f"{gpu}:{count}" if gpu else ""
    taken = any(
        (one.machine, one.gpu, one.gpus, one.spot) == (machine, gpu, count, spot) and zone in one.zones
        for one in made.found
    )
    told = any(one.covers(machine, mark, zone, spot=spot) for one in made.left_out)
    assert taken != told, (machine, mark, zone, spot, taken)


@settings(max_examples=40, deadline=None)
@given(tables, options)
def test_nearest_change_of_a_wish_has_a_candidate(table: PriceTable, asked: Any) -> None:
    found = nearest(wish_of(asked), table, Quotas())
    assert found is None or found[1].machine in table.machines


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ({"gpu": ("L4:3",), "zones": ("us",)}, "with `gpu: L4:2`: g2-standard-24 in us-"),
        ({"gpu": ("T4:1",), "zones": ("africa",)}, "with `zones: any`: n1-standard-8 with 1 × T4 in "),
        ({"cpus": "1000+"}, "with other `cpus`: "),
        ({"cpus": "7"}, "with other `cpus`: "),
        ({"gpu": ("H200:8",), "zones": ("us-south1",), "spot": False}, "with `zones: any`: a3-ultra"),
        ({"zones": ("mars",)}, "any, us, europe, asia"),
        ({"zones": ("us-centrall1",), "machine": "any"}, "did you mean 'us-central1'?"),
        ({"zones": ("any",), "gpu": ("L44:1",)}, "did you mean 'L4'?"),
        ({"zones": ("any",), "machine": "n2-standart-4"}, "did you mean 'n2-standard-4'?"),
    ],
)  # fmt: skip
def test_wish_that_nothing_fits_names_the_nearest(asked: dict[str, Any], hint: str) -> None:
    with pytest.raises(UsageError, match="burst") as met:
        chosen.candidates(Fleet("burst", "gce", options=asked))
    assert hint in met.value.hint and "\n" not in str(met.value), met.value.hint


@pytest.mark.parametrize("gpu", ["L4:1", "T4:1"])
def test_gpu_without_a_price_is_never_had_for_nothing(gpu: str) -> None:
    own = prices.load(prices.OWN)
    cut = replace(own, gpus={name: kind for name, kind in own.gpus.items() if name != gpu.partition(":")[0]})
    found = choose(wish_of({"zones": ("us",), "gpu": (gpu, "P100:1")}), cut)
    assert found.found and {one.gpu for one in found.found} == {"P100"}
    assert any(f"the price of {gpu.partition(':')[0]} is not known" in one.why for one in found.left_out)


def test_machine_with_local_disks_comes_by_its_name_alone() -> None:
    """What they cost is not in the table: it would be dearer than it looks."""
    own = prices.load(prices.OWN)
    found = choose(wish_of({"zones": ("us",), "machine": "any", "cpus": "8"}), own)
    assert any(one.machine == "c3-standard-8" for one in found.found)
    assert not any("lssd" in one.machine for one in found.found)
    assert any(one.machine == "c3-standard-8-lssd" and "local SSDs" in one.why for one in found.left_out)
    assert choose(wish_of({"zones": ("us",), "machine": "c3-standard-8-lssd"}), own).found


def test_quota_that_is_used_up_leaves_its_region_out() -> None:
    told = [
        {"name": "us-east4", "zones": ["x/zones/us-east4-a", "x/zones/us-east4-c"], "quotas": [
            {"metric": "PREEMPTIBLE_NVIDIA_L4_GPUS", "limit": 2.0, "usage": 2.0}]},
        {"name": "us-east1", "zones": ["x/zones/us-east1-b"], "quotas": [
            {"metric": "PREEMPTIBLE_NVIDIA_L4_GPUS", "limit": 1.0, "usage": 0.0}]},
    ]  # fmt: skip
    known = quotas.read(told, {"quotas": [{"metric": "GPUS_ALL_REGIONS", "limit": 4.0, "usage": 0.0}]})
    fleet = Fleet("burst", "gce", options={"zones": ("us",), "gpu": ("L4:1",)}, known={chosen.QUOTAS: known})
    found = chosen.candidates(fleet)
    assert [one.zones for one in found.found] == [("us-east1-b",)]
    lines = list(chosen.left_out(found))
    assert any("quota PREEMPTIBLE_NVIDIA_L4_GPUS: 0 left, 1 needed" in line for line in lines)


@pytest.mark.parametrize(
    ("location", "region", "said"),
    [
        ("US", "us-east1", ""),
        ("US-EAST1", "us-east1", ""),
        ("EU", "europe-west4", ""),
        ("US-EAST1", "us-west1", "in another region, which costs about 0.02 a GB"),
        ("US", "northamerica-northeast1", "in another region, which costs about 0.02 a GB"),
        ("EU", "us-east1", "on another continent, which costs 0.05 to 0.15 a GB"),
        ("US", "asia-east1", "on another continent, which costs 0.05 to 0.15 a GB"),
        ("", "us-east1", ""),
    ],
)
def test_distance_of_a_bucket_is_said_with_its_price(location: str, region: str, said: str) -> None:
    found = places.far(location, region)
    assert (said in found) and bool(found) == bool(said)
    known = {chosen.BUCKETS: {"data": location}}
    fleet = Fleet("burst", "gce", options={"zones": (region,), "machine": "n2-standard-2"}, known=known)
    warned = chosen.warnings(fleet)
    assert [said in line for line in warned] == [True] * bool(said), warned


def test_fleet_with_fixed_zones_and_machine_is_no_wish() -> None:
    for fixed in ({"zones": ("us-east1-b",)}, {"zones": ("us-east1-b",), "machine": "x", "gpu": "T4:1"}):
        fleet = Fleet("burst", "gce", options=fixed)
        assert not wishes.is_wish(fleet) and chosen.narrowed(fleet) is fleet


def test_launch_by_price_repeated_keeps_the_groups_it_has() -> None:
    fleet = Fleet("burst", "gce", workers=3, options={"zones": ("us",), "gpu": ("T4:1", "L4:1")})
    made = plans.requests(fleet, Launch("gs://runs/x", generation="burst/1", at=1.0), "p")
    assert [group.size for group in made.groups] == [3] and len(made.spare) > 3
    assert len({group.name for group in (*made.groups, *made.spare)}) == len(made.chosen)
    moved = made.spare[1]
    again = plans.beside(made, {(moved.region, moved.name): 2})
    assert [(group.name, group.size) for group in again.groups] == [(moved.name, 3)]
    assert moved.name not in {group.name for group in again.spare} and made.groups[0].name in {
        group.name for group in again.spare
    }
    assert plans.beside(made, {}) == made


def test_cheapest_region_comes_first_and_excluded_ones_never() -> None:
    fleet = Fleet(
        "burst", "gce", options={"zones": ("us",), "machine": "any", "cpus": "8+", "spot": "prefer"}
    )
    found = chosen.candidates(fleet).found
    assert [one.price for one in found] == sorted(one.price for one in found)
    assert len({one.machine for one in found[:10]}) > 1 and {one.spot for one in found} == {True, False}
    first = found[0].region
    narrower = replace(fleet, options={**fleet.options, "exclude_zones": (first, found[-1].zones[0])})
    left = chosen.candidates(narrower).found
    assert left and first not in {one.region for one in left}
    assert found[-1].zones[0] not in {zone for one in left for zone in one.zones}


@pytest.mark.parametrize("given_price", [None, 0.25])
def test_template_of_a_candidate_tells_its_workers_their_price(given_price: float | None) -> None:
    fleet = Fleet("burst", "gce", price=given_price, options={"zones": ("us",), "gpu": ("T4:1", "L4:1")})
    made = plans.requests(fleet, Launch("gs://runs/x", generation="burst/1", at=1.0), "p")
    for group, one in zip((*made.groups, *made.spare), chosen.tried(fleet), strict=True):
        body = made.template_of(group)["properties"]
        told = json.loads(next(row["value"] for row in body["metadata"]["items"] if "settings" in row["key"]))
        words = told["worker"]
        cost = one.price if given_price is None else given_price
        assert float(words[words.index("--price") + 1]) == pytest.approx(cost, rel=1e-4)
        assert (body["machineType"], body["scheduling"]["provisioningModel"]) == (one.machine, "SPOT")
        assert names_of.generation_of(f"{group.name}-ab12") == "1" and len(f"{group.name}-ab12") <= 63


def mixed(workers: int, **more: object) -> plans.Requests:
    options = {"project": "p", "zones": ("us",), "gpu": ("L4:1", "A100:1"), "mix": True, **more}
    fleet = Fleet("burst", "gce", workers=workers, options=options, scope="s", store="gs://b/s")
    return plans.requests(fleet, Launch("gs://b/s", generation="burst/1", at=1e9), "p")


def test_mixed_fleet_has_about_as_many_of_each_machine() -> None:
    made = mixed(5)
    sizes = {made.machine_of(group): group.size for group in made.groups}
    assert sizes == {"g2-standard-8": 3, "a2-highgpu-1g": 2}
    assert all(not group.size for group in made.spare) and len(made.spare) > 3
    assert len([path for path, _ in made if path.endswith("instanceGroupManagers")]) == 2
    assert [line.split(",")[0] for line in plans.notes(made, Launch("gs://b/s", at=1e9))[:2]] == [
        "3 × g2-standard-8",
        "2 × a2-highgpu-1g",
    ]
    assert [made.machine_of(group) for group in mixed(1).groups] == ["g2-standard-8"]


@pytest.mark.parametrize(
    ("workers", "said"),
    [(1, ["`mix` has 2 machines for 1 worker: a2-highgpu-1g only where others are out"]), (2, [])],
)
def test_machine_of_a_mix_without_a_worker_is_said(workers: int, said: list[str]) -> None:
    options = {"zones": ("us",), "gpu": ("L4:1", "A100:1"), "mix": True}
    assert chosen.warnings(Fleet("burst", "gce", workers=workers, options=options)) == said


@pytest.mark.parametrize("given", [{"gpu": ("L4:1",)}, {"gpu": "L4:1"}, {"gpu": None}])
def test_mix_of_one_machine_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="nothing to mix"):
        mixed(4, **given)


def outgrown(size: int, *gpus: str) -> Candidates:
    fleet = Fleet("burst", "gce", options={"zones": ("us",), "gpu": gpus}, known={"outgrown": size})
    return chosen.candidates(fleet)


def test_gpu_too_small_for_earlier_runs_is_left_out() -> None:
    told = 15_843_721_216  # of a T4, as its driver tells it
    made = outgrown(told, "T4:1", "V100:1", "L4:1", "A100:1")
    assert {one.gpu for one in made.found} == {"L4", "A100"}
    assert any("out of memory" in one.why and "T4" in one.gpu for one in made.left_out)
    assert {one.gpu for one in outgrown(24_152_899_584, "T4:1", "L4:1", "A100:1").found} == {"A100"}


def test_wish_without_a_large_gpu_names_the_next_larger() -> None:
    with pytest.raises(UsageError, match=r"out of memory on GPUs of 15.8 GB") as refused:
        outgrown(15_843_721_216, "T4:1")
    assert "with `gpu: L4:1`" in (refused.value.hint or "")


@pytest.mark.parametrize(("gpus", "comes"), [(("T4:1", "A100:1"), True), (("T4:1", "V100:1"), False)])
def test_larger_gpu_comes_only_where_the_wish_has_one(gpus: tuple[str, ...], comes: bool) -> None:
    fleet = Fleet("burst", "gce", options={"zones": ("us",), "gpu": gpus})
    largest = max(one.gpu_memory for one in prices.price(fleet, 1).offers)
    assert larger_comes(15_843_721_216, [], largest) is comes
