"""The emulator of Compute Engine judged by Google's own clients, which nobody here wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gce_oracle
import servers
from gce_api import IMAGE, LABELS, REGION, ZONE, properties, until
from hostler.emulators.gce import GceEmulator, emulator

compute = servers.later("google.cloud.compute_v1")
discovery = servers.later("googleapiclient.discovery")
credentials = servers.later("google.auth.credentials")
api_errors = servers.later("google.api_core.exceptions")


@pytest.fixture
def gce() -> Iterator[GceEmulator]:
    with emulator(scale=60) as started:
        yield started
        gce_oracle.check_seen(started.requests, refused_too=False)


class Typed:
    """Google's typed clients, led to the emulator."""

    def __init__(self, gce: GceEmulator) -> None:
        self._gce = gce

    def __getattr__(self, name: str) -> Any:
        """`typed.Instances` is an InstancesClient."""
        folder = "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).strip("_")
        services = __import__(f"google.cloud.compute_v1.services.{folder}.transports", fromlist=["x"])
        transport = getattr(services, f"{name}RestTransport")
        anonymous = credentials.AnonymousCredentials()
        made = transport(host=self._gce.host, url_scheme="http", credentials=anonymous)
        return getattr(compute, f"{name}Client")(transport=made)

    def wait(self, operation: Any) -> Any:
        """Its own polling asks Google's host, so the operation is waited for by name."""
        found = operation._extended_operation
        where = {"project": self._gce.project, "operation": found.name}
        while found.status != compute.Operation.Status.DONE:
            if found.zone:
                found = self.ZoneOperations.wait(**where, zone=found.zone.rpartition("/")[2])
            elif found.region:
                found = self.RegionOperations.wait(**where, region=found.region.rpartition("/")[2])
            else:
                found = self.GlobalOperations.wait(**where)
        return found


@pytest.fixture
def typed(gce: GceEmulator) -> Typed:
    return Typed(gce)


def template() -> Any:
    disk = compute.AttachedDisk(boot=True, auto_delete=True)
    disk.initialize_params = compute.AttachedDiskInitializeParams(source_image=IMAGE, disk_size_gb=20)
    spot = compute.Scheduling(provisioning_model="SPOT", instance_termination_action="DELETE")
    script = compute.Items(key="startup-script", value="while true; do sleep 0.05; done")
    inside = compute.InstanceProperties(
        machine_type="e2-small",
        disks=[disk],
        scheduling=spot,
        labels=LABELS,
        network_interfaces=[compute.NetworkInterface(network="global/networks/default")],
        metadata=compute.Metadata(items=[script]),
    )
    return compute.InstanceTemplate(name="t", properties=inside)


def group(size: int) -> Any:
    return compute.InstanceGroupManager(
        name="g",
        instance_template="global/instanceTemplates/t",
        target_size=size,
        distribution_policy=compute.DistributionPolicy(target_shape="ANY"),
        update_policy=compute.InstanceGroupManagerUpdatePolicy(instance_redistribution_type="NONE"),
    )


def test_typed_client_makes_a_fleet_loses_a_machine_and_deletes(typed: Typed, gce: GceEmulator) -> None:
    here = {"project": gce.project, "region": REGION}
    typed.wait(typed.InstanceTemplates.insert(project=gce.project, instance_template_resource=template()))
    groups = typed.RegionInstanceGroupManagers
    typed.wait(groups.insert(**here, instance_group_manager_resource=group(2)))
    until(lambda: len(gce.names()) == 2, "two machines")
    managed = list(groups.list_managed_instances(**here, instance_group_manager="g"))
    assert {one.instance_status for one in managed} == {"RUNNING"}
    found = dict(typed.Instances.aggregated_list(project=gce.project))
    (one, _) = found[f"zones/{ZONE}"].instances
    assert (one.labels, one.scheduling.provisioning_model) == (LABELS, "SPOT")
    gce.preempt(one.name, notice=False)
    until(lambda: len(gce.names()) == 2, "two machines again")
    again = typed.Instances.get(project=gce.project, zone=ZONE, instance=one.name)
    assert again.id != one.id and again.status == "RUNNING"
    typed.wait(groups.delete(**here, instance_group_manager="g"))
    typed.wait(typed.InstanceTemplates.delete(project=gce.project, instance_template="t"))
    assert gce.left() == []


def test_the_typed_client_pages_reads_errors_and_quotas(typed: Typed, gce: GceEmulator) -> None:
    gce.stockout(ZONE)
    instance = compute.Instance(name="one", machine_type=f"zones/{ZONE}/machineTypes/e2-small")
    inside = template().properties
    instance.disks, instance.network_interfaces = inside.disks, inside.network_interfaces
    done = typed.wait(typed.Instances.insert(project=gce.project, zone=ZONE, instance_resource=instance))
    assert done.error.errors[0].code == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert done.error.errors[0].error_details[0].error_info.reason == "resource_availability"
    with pytest.raises(api_errors.NotFound):
        typed.Instances.get(project=gce.project, zone=ZONE, instance="one")
    asked = compute.ListMachineTypesRequest(project=gce.project, zone=ZONE, max_results=50)
    assert len(list(typed.MachineTypes.list(asked))) > 100
    quotas = {one.metric: one.limit for one in typed.Regions.get(project=gce.project, region=REGION).quotas}
    assert quotas["PREEMPTIBLE_NVIDIA_L4_GPUS"] == 64


@pytest.mark.parametrize(
    "words",
    [
        f"instance-groups managed list-instances g --region={REGION}",
        *(pytest.param(words, marks=pytest.mark.soak) for words in ("instances list", "disks list")),
    ],
)
@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not here")
def test_gcloud_shows_the_fleet(tmp_path: Path, words: str) -> None:
    """Answers alone are held against the document: gcloud asks with parameters that are not in it."""
    (tmp_path / "token").write_text("t")
    with emulator(scale=60) as gce:
        typed, here = Typed(gce), {"project": gce.project, "region": REGION}
        typed.wait(typed.InstanceTemplates.insert(project=gce.project, instance_template_resource=template()))
        typed.wait(typed.RegionInstanceGroupManagers.insert(**here, instance_group_manager_resource=group(1)))
        until(lambda: len(gce.names()) == 1, "a machine")
        own = {
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{gce.url}/",
            "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(tmp_path / "token"),
            "CLOUDSDK_CONFIG": str(tmp_path),
            "CLOUDSDK_CORE_PROJECT": gce.project,
        }
        command = ["gcloud", "compute", *words.split(), "--format=value(name)"]
        done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout.split()) == (0, gce.names()), done.stderr
        for seen in gce.requests:
            gce_oracle.check_answer(seen.method, seen.path, seen.status, seen.answer)


def test_discovery_client_reads_the_machines_that_were_made(gce: GceEmulator) -> None:
    options = {"api_endpoint": f"{gce.url}/"}
    anonymous = credentials.AnonymousCredentials()
    with discovery.build("compute", "v1", credentials=anonymous, client_options=options) as client:
        body = {"name": "one", **properties(), "machineType": f"zones/{ZONE}/machineTypes/e2-small"}
        asked = client.instances().insert(project=gce.project, zone=ZONE, body=body).execute()
        where = {"project": gce.project, "zone": ZONE, "operation": asked["name"]}
        while client.zoneOperations().wait(**where).execute()["status"] != "DONE":
            continue
        found = (
            client.instances()
            .list(project=gce.project, zone=ZONE, filter="labels.hostler-fleet=burst")
            .execute()
        )
        assert [one["name"] for one in found["items"]] == ["one"]
        first = client.machineTypes().list(project=gce.project, zone=ZONE, maxResults=100)
        following = client.machineTypes().list_next(first, first.execute())
        assert following.execute()["items"]
