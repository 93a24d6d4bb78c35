"""Hand work on Compute Engine: a VM that is kept, one that is idle, orphans, names that are taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gce_world import CloudWorld, asked, cloud, eventually
from hostler.backends.gce.names import GceOwner


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CloudWorld]:
    with cloud(tmp_path, scale=60) as made:
        made.project(workers=1, zones=["us-central1-a", "us-central1-b"])
        made.sweep_file(1)
        yield made


def test_kept_vm_is_made_where_stock_is_and_goes_idle(world: CloudWorld) -> None:
    world.gce.stockout("us-central1-a")
    done = world.run("up", "burst", "--keep", "--idle", "3600s", "-y", timeout=120)
    assert done.code == 0, done.err
    assert done.out.strip() == "hostler-cifar-burst-keep"
    assert world.gce.names() == ["hostler-cifar-burst-keep"]
    assert "goes when unused for 1h" in done.err
    again = world.run("up", "burst", "--keep", "-y", timeout=120)
    assert again.out == done.out and len(world.gce.machines()) == 1
    eventually(lambda: "hand work" in world.run("status", timeout=60).out, 60)
    assert "burst/1: " in (costs := world.run("cost", timeout=60).out) and "for hand work at 0.0" in costs
    checked = world.run("doctor", timeout=120).out
    assert "VM hostler-cifar-burst-keep in us-central1-b is for hand work, 0.0" in checked
    assert world.run("down", "burst", timeout=120).code == 0
    world.until_gone(5)
    eventually(lambda: world.run("cost", timeout=60).out.strip().endswith("; over"), 60)
    assert "hand work" not in world.run("status", timeout=60).out


def test_same_named_fleet_of_another_store_is_left_alone(
    world: CloudWorld,
) -> None:
    theirs = GceOwner("cifar", "burst", "gs://colleague/cifar")
    body = {"name": theirs.name(7), "description": theirs.describe(7), "properties": plain(theirs)}
    make(world, "global/instanceTemplates", body)
    vm = {**plain(theirs), "name": f"{theirs.name(7)}-abcd"}
    vm["machineType"] = "zones/us-central1-a/machineTypes/e2-small"
    make(world, "zones/us-central1-a/instances", vm)
    before = world.gce.left()
    checked = world.run("doctor", "--remove", "-y", timeout=120)
    assert theirs.name(7) not in checked.out + checked.err
    assert "left alone: 2 resources of project cifar in another store" in checked.out
    done = world.run("down", "burst", timeout=120)
    assert done.code == 0 and "removing" not in done.err, done.err
    assert world.gce.left() == before and len(before) == 3


def test_vm_for_hand_work_that_would_end_immediately_is_refused(world: CloudWorld) -> None:
    done = world.run("up", "burst", "--keep", "--idle", "0s", "-y", timeout=120)
    assert done.code == 2 and "gone at once" in done.err
    world.project(workers=1, more="max_cost: 0.0001")
    done = world.run("up", "burst", "--keep", "-y", timeout=120)
    assert done.code == 2 and "max_cost 0.0001 is less than" in done.err
    assert not asked(world, "instances.insert")


@pytest.mark.soak
def test_a_vm_that_nobody_uses_removes_itself(world: CloudWorld) -> None:
    world.env["HOSTLER_BUSY_LOAD"] = "1000"  # of this whole machine, which is not what is meant here
    done = world.run("up", "burst", "--keep", "--idle", "2s", "-y", timeout=120)
    assert done.code == 0, done.err
    world.until_gone(90)


def test_doctor_finds_what_no_fleet_needs_and_removes_it(world: CloudWorld) -> None:
    owner = GceOwner("cifar", "burst", "gs://runs/cifar")
    body = {"name": owner.name(7), "description": owner.describe(7), "properties": {}}
    make(world, "global/instanceTemplates", {**body, "properties": plain(owner)})
    found = world.run("doctor", timeout=120)
    assert "template hostler-cifar-burst-7 belongs to no working fleet" in found.out
    assert "hostler doctor --remove" in found.out
    kept = world.run("doctor", "--remove", timeout=120)
    assert "cannot ask" in kept.out and world.gce.left() != []
    gone = world.run("doctor", "--remove", "-y", timeout=120)
    assert "1 removed, 0 still there" in gone.err, gone.err
    assert world.gce.left() == []


def test_name_that_somebody_else_has_is_reported_with_its_owner(world: CloudWorld) -> None:
    mine, theirs = GceOwner("cifar", "burst", "gs://runs/cifar"), GceOwner("cifar-burst", "x", "gs://other")
    make(
        world,
        "global/instanceTemplates",
        {"name": mine.name(1), "description": theirs.describe(1), "properties": plain(theirs)},
    )
    done = world.run("sweep", "-y", "--on", "burst", "grid.yaml", timeout=120)
    assert done.code == 1, done.err
    assert "hostler-cifar-burst-1 is taken" in done.err and "project cifar-burst, fleet x" in done.err
    assert "rename the fleet" in done.err
    assert len(world.gce.left()) == 1 and asked(world, "regionInstanceGroupManagers.insert") == 0


def test_the_plan_shows_what_would_be_made_and_makes_nothing(world: CloudWorld) -> None:
    done = world.run("sweep", "-n", "--on", "burst", "grid.yaml", timeout=60)
    assert done.code == 0, done.err
    text = done.out
    assert "POST projects/emulated/global/instanceTemplates" in text
    assert "hostler-cifar-burst-1" in text and '"provisioningModel": "SPOT"' in text
    assert "removed by Compute Engine itself after 1d" in text
    assert asked(world, "instanceTemplates.insert") == 0 and world.gce.left() == []


def test_plan_warns_of_machines_with_less_memory_than_their_gpus(world: CloudWorld) -> None:
    text = (world.folder / "hostler.yaml").read_text()
    world.write("hostler.yaml", text.replace("e2-standard-4", "n1-standard-8, gpu: 'V100:4'"))
    done = world.run("plan", "--on", "burst", "grid.yaml", timeout=60)
    assert "n1-standard-8 has 30 GiB of memory, its GPUs have 64 GiB" in done.out
    assert "gone after 1d at the latest" in done.out
    asked = world.run("sweep", "--on", "burst", "grid.yaml", timeout=60)
    assert asked.code == 2 and "its GPUs have 64 GiB" in asked.err


def plain(owner: GceOwner) -> dict[str, object]:
    image = "projects/debian-cloud/global/images/family/debian-12"
    disk = {"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": image}}
    network = {"network": "global/networks/default"}
    return {
        "machineType": "e2-small",
        "labels": owner.labels,
        "disks": [disk],
        "networkInterfaces": [network],
    }


def make(world: CloudWorld, path: str, body: dict[str, object]) -> None:
    from hostler.backends.gce.client import GceClient
    from hostler.emulators.gce import GceEmulator

    gce: GceEmulator = world.gce
    token = gce._world.tokens.issue()
    GceClient(gce.project, gce.url, lambda: token).insert(path, json.loads(json.dumps(body)))
