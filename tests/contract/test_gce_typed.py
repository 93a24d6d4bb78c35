"""What hostler makes on Compute Engine, read back by Google's own typed client."""

from __future__ import annotations

from typing import Any

from google.auth import credentials

import servers
from hostler.backends.base import Launch
from hostler.backends.gce import plans
from hostler.backends.gce.backend import make
from hostler.backends.gce.client import GceClient
from hostler.emulators.gce import GceEmulator, emulator
from hostler.spec.project import Fleet

compute = servers.later("google.cloud.compute_v1")
LAUNCH = Launch("gs://b/cifar", generation="burst/1", at=4e9, deadline=4e9 + 3600)


def client(gce: GceEmulator, name: str, folder: str) -> Any:
    """A typed client over plain HTTP."""
    services = __import__(f"google.cloud.compute_v1.services.{folder}.transports", fromlist=["x"])
    transport = getattr(services, f"{name}RestTransport")
    made = transport(credentials=credentials.AnonymousCredentials(), host=gce.host, url_scheme="http")
    return getattr(compute, f"{name}Client")(transport=made)


def test_googles_typed_client_reads_back_what_hostler_made() -> None:
    with emulator(scale=20) as gce:
        options = {"zones": ["us-central1-a", "us-east1-b"], "gpu": "T4:1", "disk": 100 << 30}
        fleet = Fleet(name="burst", backend="gce", workers=3, scope="cifar", options=options)
        made = plans.requests(fleet, LAUNCH, gce.project)
        make(GceClient(gce.project, gce.url), made, [])
        make(GceClient(gce.project, gce.url), made, [])
        templates = client(gce, "InstanceTemplates", "instance_templates")
        found = templates.get(project=gce.project, instance_template="hostler-cifar-burst-1").properties
        assert found.machine_type == "n1-standard-8" and dict(found.labels) == made.owner.labels
        assert found.scheduling.provisioning_model == "SPOT"
        assert found.scheduling.termination_time == "2096-10-02T08:06:40Z"
        assert found.guest_accelerators[0].accelerator_type == "nvidia-tesla-t4"
        assert found.disks[0].auto_delete and found.disks[0].initialize_params.disk_size_gb == 100
        groups = client(gce, "RegionInstanceGroupManagers", "region_instance_group_managers")
        for region, size in (("us-central1", 2), ("us-east1", 1)):
            [group] = groups.list(project=gce.project, region=region)
            assert (group.name, group.target_size) == ("hostler-cifar-burst-1", size)
            assert group.distribution_policy.target_shape == "ANY"
