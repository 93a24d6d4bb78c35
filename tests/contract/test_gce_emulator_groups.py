"""Managed groups of the emulator, the platform's own timer, and the bill."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

import gce_oracle
import servers
from gce_api import IDLE, REGION, ZONE, Api, Refused, group_path, instance_url, properties, until
from hostler.emulators.gce import AtDeadline, Pace, emulator

servers.library("googleapiclient")
SCALE = 60.0


def test_group_brings_a_preempted_machine_back_under_its_name(api: Api) -> None:
    api.template()
    api.group(2)
    names = api.running(2)
    old = {machine.name: machine.body["id"] for machine in api.gce.machines()}
    api.gce.preempt(names[0], notice=False)
    api.do("DELETE", f"/zones/{ZONE}/instances/{names[1]}")
    until(lambda: all(m.body["id"] not in old.values() for m in api.gce.machines()), "new ones")
    assert api.running(2) == names and api.target() == 2
    made_by = {item["key"]: item["value"] for item in api.gce.machines()[0].body["metadata"]["items"]}
    assert made_by["created-by"].endswith(f"/regions/{REGION}/instanceGroupManagers/g")
    assert api.get(group_path())["status"]["isStable"] is True


def test_a_group_goes_to_the_zones_that_have_machines(api: Api) -> None:
    api.gce.stockout(ZONE)
    api.gce.places("us-central1-b", 1)
    api.template()
    zones = [{"zone": f"zones/{zone}"} for zone in (ZONE, "us-central1-b", "us-central1-c")]
    api.group(3, zones=zones)
    api.running(3)
    assert sorted(machine.zone[-1] for machine in api.gce.machines()) == ["b", "c", "c"]
    errors = api.get(f"{group_path()}/listErrors")["items"]
    assert {one["error"]["code"] for one in errors} == {"ZONE_RESOURCE_POOL_EXHAUSTED"}


def test_group_without_stock_reports_it_and_keeps_trying(api: Api) -> None:
    for zone in ("a", "b", "c", "f"):
        api.gce.stockout(f"{REGION}-{zone}", spot_only=True)
    api.template()
    api.group(1)
    until(lambda: any("lastAttempt" in one for one in api.managed()), "an error of a member")
    assert api.managed()[0]["currentAction"] == "CREATING" and api.gce.names() == []
    api.gce.restock()
    api.running(1)


def test_deleted_members_lower_the_target_and_abandoned_ones_live_on(api: Api) -> None:
    api.template()
    api.group(3)
    first, second, third = api.running(3)
    path, zones = group_path(), {machine.name: machine.zone for machine in api.gce.machines()}
    api.do("POST", f"{path}/deleteInstances", {"instances": [instance_url(first, zones[first])]})
    assert api.running(2) == [second, third] and api.target() == 2
    api.do("POST", f"{path}/abandonInstances", {"instances": [instance_url(second, zones[second])]})
    assert [one["name"] for one in api.managed()] == [third] and api.target() == 1
    with pytest.raises(Refused, match="not a member"):
        api.call("POST", f"{path}/deleteInstances", {"instances": [instance_url(second, zones[second])]})
    with pytest.raises(Refused) as refused:
        api.call("DELETE", "/global/instanceTemplates/t")
    assert refused.value.reason == "resourceInUseByAnotherResource"
    api.do("DELETE", path)
    assert api.gce.names() == [second]
    api.do("DELETE", "/global/instanceTemplates/t")
    api.do("DELETE", f"/zones/{zones[second]}/instances/{second}")
    assert api.gce.left() == []


def test_a_group_is_resized_up_and_down_and_patched(api: Api) -> None:
    api.template()
    api.group(1)
    (first,) = api.running(1)
    api.do("POST", f"{group_path()}/resize", size=3)
    assert first in api.running(3)
    api.do("PATCH", group_path(), {"targetSize": 1, "description": "small again"})
    assert api.running(1) == [first] and api.get(group_path())["description"] == "small again"


def test_a_group_deleted_while_it_makes_machines_leaves_none(api: Api) -> None:
    api.template()
    api.group(4)
    api.do("DELETE", group_path())
    api.do("DELETE", "/global/instanceTemplates/t")
    assert api.gce.left() == []
    time.sleep(10 / SCALE)
    assert api.gce.left() == []


def test_zonal_groups_are_groups_too(api: Api) -> None:
    api.template()
    path = f"/zones/{ZONE}/instanceGroupManagers"
    api.do("POST", path, {"name": "z", "instanceTemplate": "global/instanceTemplates/t", "targetSize": 1})
    api.running(1)
    found = api.get("/aggregated/instanceGroupManagers")["items"]
    assert [one["name"] for one in found[f"zones/{ZONE}"]["instanceGroupManagers"]] == ["z"]
    assert "warning" in found[f"regions/{REGION}"]
    assert api.get(path)["items"][0]["status"]["isStable"] is True
    api.do("DELETE", f"{path}/z")


def test_a_shape_other_than_even_must_not_be_redistributed(api: Api) -> None:
    api.template()
    body = {"name": "g", "instanceTemplate": "global/instanceTemplates/t", "targetSize": 1}
    with pytest.raises(Refused, match="redistribution"):
        api.call(
            "POST",
            "/regions/us-central1/instanceGroupManagers",
            {**body, "distributionPolicy": {"targetShape": "ANY"}},
        )
    with pytest.raises(Refused, match="not in region"):
        zones = {"zones": [{"zone": "zones/us-east1-b"}]}
        api.call("POST", "/regions/us-central1/instanceGroupManagers", {**body, "distributionPolicy": zones})


def soon(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


@pytest.mark.parametrize("at_deadline", list(AtDeadline))
def test_the_platforms_own_timer_ends_a_whole_group(at_deadline: AtDeadline) -> None:
    with emulator(scale=SCALE, at_deadline=at_deadline, pace=Pace(ended_again=20, retry=4)) as gce:
        api = Api(gce)
        api.template(scheduling={"terminationTime": soon(60)})
        api.group(2)
        api.running(2)
        began, first = gce.now(), {machine.body["id"] for machine in gce.machines()}
        until(lambda: not first & {machine.body["id"] for machine in gce.machines()}, "the end of both")
        assert 30 < gce.now() - began < 90
        if at_deadline is AtDeadline.LOWERS:
            assert api.target() == 0
        elif at_deadline is AtDeadline.KEEPS:
            until(lambda: any("lastAttempt" in one for one in api.managed()), "a machine that is refused")
            assert (api.target(), gce.machines()) == (2, [])
        else:
            api.running(2)
            until(lambda: not gce.names(), "the second end")
        api.do("DELETE", group_path())
        api.do("DELETE", "/global/instanceTemplates/t")
        assert gce.left() == []
        gce_oracle.check_seen(gce.requests)


def test_a_run_duration_counts_from_each_start(api: Api) -> None:
    limit = {"maxRunDuration": {"seconds": "30"}, "instanceTerminationAction": "STOP"}
    api.insert(spot=False, scheduling=limit)
    assert "terminationTimestamp" in api.get(f"/zones/{ZONE}/instances/one")["resourceStatus"]["scheduling"]
    began = api.gce.now()
    until(lambda: api.get(f"/zones/{ZONE}/instances/one")["status"] == "TERMINATED", "its end")
    assert 20 < api.gce.now() - began < 60
    api.do("POST", f"/zones/{ZONE}/instances/one/start")
    assert api.gce.names() == ["one"]


def test_bill_counts_every_machine_and_disk_while_it_exists(api: Api) -> None:
    api.insert("spot")
    api.insert("paid", spot=False)
    time.sleep(60 / SCALE)
    api.do("DELETE", f"/zones/{ZONE}/instances/spot")
    before = api.gce.bill(lambda one: 1.0 if one.spot else 0.0).total
    time.sleep(30 / SCALE)
    assert api.gce.bill(lambda one: 1.0 if one.spot else 0.0).total == before >= 60 / 3600
    both = api.gce.bill(lambda one: 1.0, disk=lambda one: one.gb)
    assert both.total == both.of("hostler-fleet", "burst") > before
    seconds = {one.name: one.seconds for one in api.gce.usage() if one.kind == "machine"}
    assert seconds["paid"] > seconds["spot"] + 15
    assert {one.gb for one in api.gce.usage() if one.kind == "disk"} == {20.0}


def test_templates_of_project_or_region_make_machines_and_groups(api: Api) -> None:
    made = {"name": "near", "properties": properties(scheduling={"terminationTime": soon(600)})}
    api.do("POST", f"/regions/{REGION}/instanceTemplates", made)
    near = f"regions/{REGION}/instanceTemplates/near"
    assert [one["name"] for one in api.get(f"/regions/{REGION}/instanceTemplates")["items"]] == ["near"]
    source = f"projects/{api.gce.project}/{near}"
    path = f"/zones/{ZONE}/instances"
    kind = f"zones/{ZONE}/machineTypes/e2-medium"
    api.do("POST", path, {"name": "one", "machineType": kind}, sourceInstanceTemplate=source)
    one = api.get(f"{path}/one")
    assert one["machineType"].endswith("/e2-medium") and one["scheduling"]["provisioningModel"] == "SPOT"
    body = {"name": "z", "instanceTemplate": near, "targetSize": 1}
    api.do("POST", f"/zones/{ZONE}/instanceGroupManagers", body)
    with pytest.raises(Refused, match="already being used"):
        api.call("DELETE", f"/{near}")
    with pytest.raises(Refused, match="404"):
        api.call(
            "POST", f"/zones/{ZONE}/instanceGroupManagers", {**body, "name": "y", "instanceTemplate": "none"}
        )
    api.running(2)
    api.do("DELETE", f"/zones/{ZONE}/instanceGroupManagers/z")
    api.do("DELETE", f"/{near}")


def test_a_machine_whose_processes_are_killed_stays_and_costs(api: Api) -> None:
    api.template()
    api.group(1)
    (name,) = api.running(1)
    until(lambda: api.gce.pids(name), "a process")
    before = api.gce.machines()[0].body["id"]
    api.gce.kill_processes(name)
    until(lambda: not api.gce.pids(name), "the end of all processes")
    time.sleep(10 / SCALE)
    assert api.running(1) == [name] and api.gce.machines()[0].body["id"] == before
    assert "exit status -9" in api.gce.serial(name)


def test_a_group_that_does_not_repair_leaves_what_is_broken(api: Api) -> None:
    api.template(scheduling={"instanceTerminationAction": "STOP"})
    api.group(1)
    (name,) = api.running(1)
    api.do("PATCH", group_path(), {"instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"}})
    api.gce.preempt(name, notice=False)
    time.sleep(10 / SCALE)
    assert api.gce.names("TERMINATED") == [name]


def strike(api: Api, chance: random.Random) -> None:
    """One thing that may happen to a group, by chance."""
    there = api.gce.machines()
    if not there:
        api.gce.restock()
        api.call("POST", f"{group_path()}/resize", size=3)
        return
    zone, name = chance.choice(there).key
    path = f"/zones/{zone}/instances/{name}"
    acts: list[Callable[[], object]] = [
        lambda: api.gce.preempt(name),
        lambda: api.gce.preempt(name, notice=False),
        lambda: api.gce.host_error(name),
        lambda: api.gce.kill_processes(name),
        lambda: api.call("DELETE", path),
        lambda: api.call("POST", f"{path}/stop"),
        lambda: api.call("POST", f"{path}/reset"),
        lambda: api.call(
            "POST", f"{group_path()}/deleteInstances", {"instances": [instance_url(name, zone)]}
        ),
        lambda: api.call("POST", f"{group_path()}/resize", size=chance.randrange(2, 6)),
        lambda: api.gce.stockout(f"{REGION}-{chance.choice('abcf')}", spot_only=True),
        lambda: api.gce.restock(),
    ]
    try:
        chance.choice(acts)()
    except (LookupError, Refused):
        pass  # it was gone already, or not ready


@pytest.mark.parametrize(("seed", "strikes"), [(1, 80), pytest.param(2, 2000, marks=pytest.mark.soak)])
def test_after_any_faults_a_group_is_stable_and_leaves_nothing(seed: int, strikes: int) -> None:
    with emulator(scale=100) as gce:
        api, chance = Api(gce), random.Random(seed)
        api.template(script="(setsid sleep 999 &); trap '' TERM; " + IDLE, shutdown="sleep 0.02")
        api.group(4)
        for _ in range(strikes):
            strike(api, chance)
            time.sleep(chance.uniform(0, 0.05))
        gce.restock()
        api.do("POST", f"{group_path()}/resize", size=3)
        until(lambda: api.get(group_path())["status"]["isStable"] and len(gce.names()) == 3, "three machines")
        api.do("DELETE", group_path())
        api.do("DELETE", "/global/instanceTemplates/t")
        assert gce.left() == []
        unfinished = 'status != "DONE"'
        assert "items" not in api.get(f"/zones/{ZONE}/operations", filter=unfinished)
        gce_oracle.check_seen(gce.requests, refused_too=False)
