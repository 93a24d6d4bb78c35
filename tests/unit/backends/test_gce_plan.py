"""What a fleet on Compute Engine will be, word for word; every body is one that Google's document allows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gce_oracle import check_request
from hostler.backends.base import Launch
from hostler.backends.gce import advice, hand_vm, plans
from hostler.backends.gce.backend import GceBackend
from hostler.errors import UsageError
from hostler.spec.job import Resources
from hostler.spec.project import Fleet

GOLDEN = Path(__file__).parents[2] / "golden"
LAUNCH = Launch(
    "gs://bucket/cifar",
    sweeps=("grid",),
    generation="burst/3",
    at=1_800_000_000.0,
    deadline=1_800_003_600.0,
    parcels=(("library/ab.zip", "ab"), ("wheels/cd.whl", "cd")),
    ssh_key="ssh-ed25519 AAAA hostler",
    variables={"HOSTLER_BEAT": "5", "API_KEY": "hush", "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key"},
)


def fleet(workers: int = 3, **options: Any) -> Fleet:
    zones = ["us-central1-a", "us-central1-b", "us-east1-b"]
    given = {"project": "my-project", "zones": zones, **options}
    return Fleet(
        name="burst",
        backend="gce",
        workers=workers,
        scope="cifar",
        store=LAUNCH.store,
        slots=2,
        options=given,
    )


def test_the_plan_is_what_will_be_asked_of_google() -> None:
    plan = GceBackend().plan(fleet(gpu="T4:1", exclude_zones=["us-central1-b"]), LAUNCH)
    assert plan.text == (GOLDEN / "gce_plan.txt").read_text().rstrip("\n")
    assert plan.workers == 3


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"spot": False},
        {"spot": "prefer", "machine": "n2-custom-8-32768"},
        {"gpu": "T4:4", "external_ip": False},
        {"machine": "g2-standard-8", "family": "mine", "network": "projects/p/global/networks/n"},
        {"zones": ["us-central1-a"], "subnetwork": "mine"},
        {"zones": ["us-central1-a"], "network": "lab", "subnetwork": "projects/h/regions/r/subnetworks/s"},
        {"machine": "c4-standard-8", "image": "mine", "disk": 200 << 30, "service_account": "me@p.iam"},
    ],
)
def test_every_body_is_one_that_google_takes(options: dict[str, Any]) -> None:
    given = fleet(**options)
    made = plans.requests(given, LAUNCH, "my-project")
    begin = "/compute/v1/projects/my-project"
    for path, body in made:
        check_request("POST", f"{begin}/{path}", {}, body)
    for group in made.spare:
        check_request("POST", f"{begin}/global/instanceTemplates", {}, made.template(spot=False))
        path = f"{begin}/regions/{group.region}/instanceGroupManagers"
        check_request("POST", path, {}, made.group(group))
    for group in made.groups:
        path = f"{begin}/regions/{group.region}/advice/capacity"
        check_request("POST", path, {}, advice.body(made.found, group))
        check_request("POST", f"{path}History", {}, advice.history(made.found, group))
    one = hand_vm.body(given, LAUNCH, "my-project", "us-east1-b", spot=True, idle=1800.0)
    check_request("POST", f"{begin}/zones/us-east1-b/instances", {}, one)


@pytest.mark.parametrize("account", ["", "123-compute@developer.gserviceaccount.com"])
def test_plan_warns_of_the_default_account(account: str) -> None:
    [said] = GceBackend().plan(fleet(service_account=account), LAUNCH).warnings
    assert "default account" in said and "Editor" in said
    assert "roles/storage.objectUser on the bucket and roles/compute.instanceAdmin.v1 (" in said
    assert not GceBackend().plan(fleet(service_account="me@p.iam"), LAUNCH).warnings


@pytest.mark.parametrize(
    ("options", "scopes"),
    [
        ({}, ["compute", "devstorage.read_write"]),
        ({"secret_manager": True}, ["cloud-platform"]),
        ({"service_account": "me@p.iam"}, ["cloud-platform"]),
    ],
)
def test_default_account_gets_no_wider_scopes_than_needed(options: dict[str, Any], scopes: list[str]) -> None:
    [(_, template), *_] = plans.requests(fleet(**options), LAUNCH, "p")
    [account] = template["properties"]["serviceAccounts"]
    assert [scope.rpartition("/")[2] for scope in account["scopes"]] == scopes


def test_project_ssh_keys_do_not_open_fleet_vms() -> None:
    [(_, template), *_] = plans.requests(fleet(), LAUNCH, "p")
    one = hand_vm.body(fleet(), LAUNCH, "my-project", "us-east1-b", spot=True, idle=1800.0)
    for metadata in (template["properties"]["metadata"], one["metadata"]):
        items = {item["key"]: item["value"] for item in metadata["items"]}
        assert items["block-project-ssh-keys"] == "TRUE"
        assert items["ssh-keys"] == "hostler:ssh-ed25519 AAAA hostler"


def test_vms_without_external_address_have_none_and_plan_says_needs() -> None:
    [(_, template), *_] = plans.requests(fleet(external_ip=False), LAUNCH, "p")
    [nic] = template["properties"]["networkInterfaces"]
    assert nic == {"network": "global/networks/default"}
    assert any(
        "Private Google Access" in note for note in GceBackend().plan(fleet(external_ip=False), LAUNCH).notes
    )
    assert not any("Private Google Access" in note for note in GceBackend().plan(fleet(), LAUNCH).notes)


def test_requests_contain_no_secret_and_no_credential() -> None:
    made = plans.requests(fleet(), LAUNCH, "my-project")
    sent = json.dumps([body for _, body in made])
    assert "hush" not in sent and "API_KEY" not in sent and "/home/me/key" not in sent
    assert "HOSTLER_BEAT" in sent


@pytest.mark.parametrize(
    ("options", "model", "maintenance"),
    [
        ({}, "SPOT", "TERMINATE"),
        ({"spot": "prefer"}, "SPOT", "TERMINATE"),
        ({"spot": False}, "STANDARD", "MIGRATE"),
        ({"spot": False, "gpu": "T4:1"}, "STANDARD", "TERMINATE"),
    ],
)
def test_the_platforms_own_timer_is_in_every_template(
    options: dict[str, Any], model: str, maintenance: str
) -> None:
    [(_, template), *_] = plans.requests(fleet(**options), LAUNCH, "p")
    assert template["properties"]["scheduling"] == {
        "provisioningModel": model,
        "automaticRestart": False,
        "onHostMaintenance": maintenance,
        "instanceTerminationAction": "DELETE",
        "terminationTime": "2027-01-15T09:00:00Z",
    }


def test_a_fleet_without_a_deadline_has_one_nevertheless() -> None:
    launch = Launch("gs://bucket/cifar", at=1_800_000_000.0)
    [(_, template), *_] = plans.requests(fleet(), launch, "p")
    assert template["properties"]["scheduling"]["terminationTime"] == "2027-01-16T08:00:00Z"


def test_a_folder_is_no_store_for_vms() -> None:
    with pytest.raises(UsageError, match="cannot use the store /home/me/runs"):
        GceBackend().plan(fleet(), Launch("/home/me/runs"))


def test_subnetwork_is_named_in_the_template_of_one_region() -> None:
    [(_, body), *_] = plans.requests(fleet(zones=["us-central1-a"], subnetwork="mine"), LAUNCH, "p")
    [nic] = body["properties"]["networkInterfaces"]
    assert nic["subnetwork"] == "regions/us-central1/subnetworks/mine" and "network" not in nic
    with pytest.raises(UsageError, match="mine is in one region, but the zones are in us-central1, us-east1"):
        plans.requests(fleet(zones=["us-central1-a", "us-east1-b"], subnetwork="mine"), LAUNCH, "p")


def test_plan_says_what_several_vms_need_of_their_network() -> None:
    gang = replace(LAUNCH, resources=Resources(nodes=2))
    own = {"service_account": "me@p.iam"}
    plan = GceBackend().plan(fleet(**own), gang)
    assert "by its rule default-allow-internal" in plan.notes[-1] and not plan.warnings
    plan = GceBackend().plan(fleet(network="projects/p/global/networks/lab", **own), gang)
    [said] = plan.warnings
    assert "the 2 VMs of a run reach each other inside network lab (TCP, any port)" in said
    assert "firewall-rules create lab-internal --network lab --source-ranges 10.0.0.0/8 --allow tcp)" in said
    assert not GceBackend().plan(fleet(network="lab", **own), LAUNCH).warnings


def test_allowed_ports_reach_the_vms_and_the_firewall_rule() -> None:
    variables = {**LAUNCH.variables, "HOSTLER_PORTS": "20000-20100"}
    gang = replace(LAUNCH, resources=Resources(nodes=2), variables=variables)
    [said] = GceBackend().plan(fleet(network="lab", service_account="me@p.iam"), gang).warnings
    assert "(TCP, ports 20000-20100)" in said and "--allow tcp:20000-20100)" in said
    told = plans.requests(fleet(), gang, "p").settings["variables"]
    assert told == {"HOSTLER_BEAT": "5", "HOSTLER_PORTS": "20000-20100"}
