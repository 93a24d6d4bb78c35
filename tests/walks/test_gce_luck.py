"""Bad input and bad luck on Compute Engine: a clear message, a bounded wait, and nothing left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gce_world import CloudWorld, asked, cloud, eventually


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CloudWorld]:
    with cloud(tmp_path, scale=60) as made:
        made.project(workers=1)
        made.sweep_file(1, steps=2)
        yield made


def refused(world: CloudWorld, *said: str, code: int, **variables: str) -> str:
    done = world.run("sweep", "-y", "--on", "burst", "grid.yaml", timeout=120, **variables)
    assert done.code == code, done.err + world.story()
    for words in said:
        assert words in done.err
    assert world.gce.left() == []
    return done.err


def test_stock_exhausted_everywhere_is_reported_and_the_runs_wait(
    world: CloudWorld,
) -> None:
    for zone in ("us-central1-a", "us-central1-b", "us-east1-b"):
        world.gce.stockout(zone)
    refused(world, "no VM came within 6 s", "none left", "other zones", code=75, HOSTLER_MACHINES="6")
    assert world.states() == {"queued": 1}
    [launch] = world.run("cost", "--json", timeout=60).json["fleets"]
    assert launch["over"] and launch["cost"] == 0  # no VM ever came
    world.gce.restock()
    world.launched("grid.yaml")
    world.until_gone()
    assert world.states() == {"done": 1}


def test_missing_image_is_named_with_what_to_check(world: CloudWorld) -> None:
    world.project(workers=1, more="image: nope")
    refused(world, "no image named 'nope' in emulated", "check `image`", code=1)
    assert not asked(world, "instanceTemplates.insert")


def test_fleet_with_only_some_of_its_vms_reports_and_continues(
    world: CloudWorld,
) -> None:
    world.project(workers=3, zones=["us-central1-a"])
    world.gce.places("us-central1-a", 1)
    told = world.launched("grid.yaml").err
    assert "1 of 3 VMs run (us-central1: the zone has none left now)" in told
    world.until_gone()
    assert world.states() == {"done": 1}


def test_exhausted_spot_becomes_on_demand_where_that_is_preferred(world: CloudWorld) -> None:
    world.project(workers=2, more="spot: prefer")
    world.sweep_file(2, steps=2)
    for zone in ("us-central1-a", "us-central1-b", "us-east1-b"):
        world.gce.stockout(zone, spot_only=True)
    told = world.launched("grid.yaml").err
    assert "us-east1: trying us-central1, on demand" in told  # both regions at once, or one after the other
    assert "none left in us-central1" in told
    world.until_gone()
    assert world.states() == {"done": 2}
    assert [one.spot for one in world.gce.usage() if one.kind == "machine"] == [False, False]


@pytest.mark.soak
def test_a_region_without_stock_is_left_for_another(world: CloudWorld) -> None:
    world.gce.stockout("us-central1-a")
    world.gce.stockout("us-central1-b")
    world.launched("grid.yaml")
    world.until_gone()
    assert world.states() == {"done": 1}


def test_project_quota_is_reported_with_where_to_raise_it(world: CloudWorld) -> None:
    world.project(workers=2, more="gpu: 'T4:1'")
    text = (world.folder / "hostler.yaml").read_text()
    world.write("hostler.yaml", text.replace("e2-standard-4", "n1-standard-8"))
    world.gce.quota("GPUS_ALL_REGIONS", 0)
    refused(world, "GPUS_ALL_REGIONS", "iam-admin/quotas", code=1)


def test_disabled_api_is_reported_with_how_to_enable_it(world: CloudWorld) -> None:
    world.gce.disable_api()
    refused(world, "the Compute Engine API is not enabled", "gcloud services enable", code=1)


def test_a_wrong_project_is_said(world: CloudWorld) -> None:
    text = (world.folder / "hostler.yaml").read_text()
    world.write("hostler.yaml", text.replace(f"project: {world.gce.project}", "project: nowhere"))
    refused(world, "the project does not exist", "`project`", code=1)


def test_unknown_zone_is_reported_with_the_nearest_ones(world: CloudWorld) -> None:
    world.project(workers=2, zones=["us-central1-a", "us-centrall1-b"], more="price: 1")
    refused(world, "no zone named 'us-centrall1-b'", "nearest: us-central1-b", code=1)


def test_refused_credentials_are_reported_with_how_to_get_others(world: CloudWorld) -> None:
    world.gce.refuse_credentials()
    refused(world, "does not accept the credentials", "application-default login", code=1)


def test_missing_credentials_are_reported_with_how_to_get_some(world: CloudWorld) -> None:
    variables = {"HOSTLER_GCE_ENDPOINT": "", "GCE_METADATA_HOST": "", "NO_GCE_CHECK": "true"}
    variables |= {"HOME": str(world.folder), "CLOUDSDK_CONFIG": str(world.folder)}
    refused(world, "credentials are not accepted", "application-default login", code=1, **variables)


def test_failed_startup_script_is_reported_with_its_last_lines(world: CloudWorld) -> None:
    world.break_startup()
    said = refused(world, "no VM", "has reported within 8 s", code=75, HOSTLER_REPORT="8")
    assert "this image has no Python" in said
    [launch] = world.run("cost", "--json", timeout=60).json["fleets"]
    assert launch["over"] and launch["cost"] > 0  # they ran, and were watched


def test_bucket_lost_while_the_fleet_starts_leaves_no_vm(world: CloudWorld) -> None:
    process = world.start("sweep", "-y", "--on", "burst", "grid.yaml")
    eventually(lambda: asked(world, "regionInstanceGroupManagers.insert") > 0, 60)
    assert world.gce.gcs is not None
    world.gce.gcs.remove_bucket("runs")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    assert "cannot be read from gs://runs/cifar" in said and "was taken down" in said
    assert world.gce.left() == []


def test_bucket_lost_while_runs_work_ends_them_and_their_vms(world: CloudWorld) -> None:
    world.sweep_file(1, hold=world.hold())
    world.launched("grid.yaml")
    eventually(lambda: "attempt 1 starts" in "".join(map(world.gce.serial, world.gce.names())), 60)
    assert world.gce.gcs is not None
    world.gce.gcs.remove_bucket("runs")
    eventually(
        lambda: not [path for path in world.gce.left() if "/instances/" in path or "/disks/" in path], 120
    )
    checked = world.run("doctor", "--remove", "-y", timeout=120)
    assert "the bucket does not exist" in checked.out and "0 still there" in checked.err, checked.out
    assert world.gce.left() == []
    done = world.run("down", "burst", timeout=120)
    assert done.code == 0 and "nothing of burst is left" in done.err, done.err


def test_launch_refused_in_the_middle_leaves_and_costs_nothing(world: CloudWorld) -> None:
    world.gce.fail(400, "*Managers.insert")
    refused(world, "Compute Engine does not accept the request", code=1)
    assert asked(world, "instanceTemplates.insert") == 1
    [launch] = world.run("cost", "--json", timeout=60).json["fleets"]
    assert launch["over"] and launch["cost"] == 0


@pytest.mark.soak
def test_a_busy_api_is_asked_again(world: CloudWorld) -> None:
    world.gce.fail(503, "*Managers.insert")
    world.gce.fail(429, "instanceTemplates.insert", times=2)
    world.launched("grid.yaml")
    world.until_gone()
    assert world.states() == {"done": 1}


def test_store_that_vms_cannot_use_is_refused_before_submission(world: CloudWorld) -> None:
    text = (world.folder / "hostler.yaml").read_text().replace("gs://runs/cifar", "runs")
    world.write("hostler.yaml", text)
    refused(world, "cannot", "gs://", code=2)
