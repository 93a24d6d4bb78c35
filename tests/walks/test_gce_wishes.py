"""Wishes instead of places: the cheapest machines that fit, and the next ones where those are out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gce_world import CloudWorld, asked, cloud, eventually

US = ("us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f", "us-east1-b", "us-east1-c",
      "us-east1-d", "us-west1-a", "us-west1-b", "us-west1-c")  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CloudWorld]:
    with cloud(tmp_path, scale=60) as made:
        made.sweep_file(2, steps=2)
        yield made


def wish(world: CloudWorld, **keys: object) -> None:
    one = {"backend": "gce", "project": world.gce.project, "workers": 2, **keys}
    project = {"name": "cifar", "store": "gs://runs/cifar", "checkpoint": {"every": "1s"}}
    world.write("hostler.yaml", json.dumps({**project, "fleets": {"burst": one}}))


def test_machines_that_are_out_give_way_to_another_type(world: CloudWorld) -> None:
    wish(world, zones="us", gpu=["L4:1", "T4:1"], exclude_zones=["us-west1"])
    assert world.gce.gcs is not None
    world.gce.gcs.locate("runs", "EU")
    for zone in US:
        world.gce.stockout(zone, machine="n1-standard-8")
    plan = world.run("plan", "--on", "burst", "--json", "grid.yaml", timeout=60).json["price"]
    offers = plan["offers"]
    assert [one["price"] for one in offers] == sorted(one["price"] for one in offers)
    assert {one["machine"] for one in offers} == {"n1-standard-8 with 1 × T4", "g2-standard-8"}
    assert {one["where"].split()[0] for one in offers} == {"us-central1", "us-east1"}
    assert any("the project has no such zone" in line for line in plan["left_out"])
    assert any("bucket runs is in EU" in line and "continent" in line for line in plan["warnings"])
    told = world.launched("grid.yaml").err
    assert "left out: " in told and "`exclude_zones`" in told
    assert "none left in us-central1: trying n1-standard-8 in us-east1" in told, told
    assert "trying g2-standard-8 in us-" in told, told
    world.until_gone()
    assert world.states() == {"done": 2}
    used = [one for one in world.gce.usage() if one.kind == "machine"]
    assert {(one.type, one.zone.startswith("us-west1")) for one in used} == {("g2-standard-8", False)}
    [launch] = world.run("cost", "--json", timeout=60).json["fleets"]
    paid = {one["price"] for one in offers if one["machine"] == "g2-standard-8"}
    assert any(launch["cost"] / launch["worker_hours"] == pytest.approx(one, rel=0.02) for one in paid)
    assert launch["price"] == max(one["price"] for one in offers)  # the cap counts with the dearest


def test_region_without_quota_is_left_out_before_the_launch(world: CloudWorld) -> None:
    wish(world, zones=["us-central1", "us-east1"], gpu=["L4:1"])
    for metric in ("PREEMPTIBLE_NVIDIA_L4_GPUS", "NVIDIA_L4_GPUS"):  # none for spot: the plain one counts
        world.gce.quota(metric, 0, region="us-central1")
    shown = world.run("sweep", "-n", "--on", "burst", "grid.yaml", timeout=60)
    assert shown.code == 0 and "quota NVIDIA_L4_GPUS: 0 left" in shown.out, shown.out[:1500]
    assert "us-east1/instanceGroupManagers" in shown.out and "us-central1/" not in shown.out
    assert not asked(world, "instanceTemplates.insert") and world.gce.left() == []


@pytest.mark.parametrize(
    ("keys", "near"),
    [
        ({"zones": "us", "gpu": ["L4:3"]}, "the nearest, with `gpu: L4:2`: g2-standard-24 in us-"),
        ({"zones": "any", "cpus": "900+"}, "the nearest, with other `cpus`: "),
    ],
)
def test_wish_that_nothing_fits_makes_nothing(world: CloudWorld, keys: dict[str, object], near: str) -> None:
    wish(world, **keys)
    for words in (("plan",), ("sweep", "-y")):
        done = world.run(*words, "--on", "burst", "grid.yaml", timeout=60)
        assert done.code == 2 and "no machine fits" in done.err and near in done.err, done.err
        assert len(done.err.strip().splitlines()) == 2, done.err  # what happened, and what to do
    assert world.gce.left() == [] and not asked(world, "instanceTemplates.insert")
    assert "no sweep" in world.run("status", "grid", timeout=60).err or world.run("status", "grid").code


def test_mixed_fleet_works_on_each_of_its_machines(world: CloudWorld) -> None:
    wish(world, zones=["us-central1", "us-east1"], gpu=["L4:1", "T4:1"], mix=True)
    world.sweep_file(4, hold=world.hold())
    told = world.launched("grid.yaml").err
    assert "2 workers at" in told, told
    eventually(lambda: world.states().get("running") == 2, 90)  # each of them has one
    world.let_go()
    world.until_gone()
    assert world.states() == {"done": 4}
    used = {one.type for one in world.gce.usage() if one.kind == "machine"}
    assert used == {"n1-standard-8", "g2-standard-8"}
    [launch] = world.run("cost", "--json", timeout=60).json["fleets"]
    assert 0 < launch["cost"] / launch["worker_hours"] <= launch["price"]  # each at its own price
