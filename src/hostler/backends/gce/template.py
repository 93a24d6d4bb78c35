"""The instance template of a fleet, as Compute Engine takes it. Pure.

No secret is in it: whoever may see the project may read a VM's metadata. The platform's own timer is: at
`terminationTime` it deletes the VM, whether or not anything of ours is still alive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from hostler.backends.gce.names import GceOwner
from hostler.backends.gce.scripts import shutdown_script, startup_script
from hostler.backends.gce.shape import GPUS, VmShape

_AUTH = "https://www.googleapis.com/auth/"
EVERYTHING = [f"{_AUTH}cloud-platform"]
ENOUGH = [f"{_AUTH}compute", f"{_AUTH}devstorage.read_write"]  # for a worker: its group, and the bucket
SETTINGS = "hostler-settings"  # the attribute that says what the VM is for

Body = dict[str, Any]


def template(
    owner: GceOwner, name: str, described: str, found: VmShape, settings: Mapping[str, Any], *, spot: bool
) -> Body:
    """`settings` reach the VM as they are; its `deadline` is the platform's too."""
    return {
        "name": name,
        "description": described,
        "properties": properties(owner, found, settings, spot=spot),
    }


def properties(owner: GceOwner, found: VmShape, settings: Mapping[str, Any], *, spot: bool) -> Body:
    body: Body = {
        "machineType": found.machine,
        "labels": owner.labels,
        "disks": [disk(owner, found)],
        "networkInterfaces": [interface(found)],
        "serviceAccounts": [{"email": found.account, "scopes": scopes(found)}],
        "scheduling": scheduling(float(settings["deadline"]), spot=spot, gpu=bool(found.gpus)),
        "metadata": {"items": metadata(settings)},
    }
    if found.attached:
        kind = GPUS[found.gpu].type
        body["guestAccelerators"] = [{"acceleratorType": kind, "acceleratorCount": found.gpus}]
    return body


def scopes(found: VmShape) -> list[str]:
    """Scopes of a VM's tokens. Secret Manager has none of its own; roles bound an account of one's own."""
    return ENOUGH if found.has_default_account and not found.secret_manager else EVERYTHING


def interface(found: VmShape) -> Body:
    named = {"network": found.network, "subnetwork": found.subnetwork}
    outside = {"accessConfigs": [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}]}
    return {**{key: value for key, value in named.items() if value}, **(outside if found.external_ip else {})}


def disk(owner: GceOwner, found: VmShape) -> Body:
    return {
        "boot": True,
        "autoDelete": True,
        "type": "PERSISTENT",
        "mode": "READ_WRITE",
        "initializeParams": {
            "sourceImage": found.image,
            "diskSizeGb": str(found.disk),
            "diskType": found.disk_type,
            "labels": owner.labels,
        },
    }


def scheduling(deadline: float, *, spot: bool, gpu: bool) -> Body:
    return {
        "provisioningModel": "SPOT" if spot else "STANDARD",
        "automaticRestart": False,
        "onHostMaintenance": "TERMINATE" if spot or gpu else "MIGRATE",
        "instanceTerminationAction": "DELETE",
        "terminationTime": rfc3339(deadline),
    }


def metadata(settings: Mapping[str, Any]) -> list[Body]:
    items = {
        SETTINGS: json.dumps(settings, sort_keys=True),
        "startup-script": startup_script("hostler.backends.gce.boot"),
        "shutdown-script": shutdown_script(),
        "enable-guest-attributes": "TRUE",
        "block-project-ssh-keys": "TRUE",  # those of ssh-keys below still open it
        "enable-oslogin": "FALSE",
    }
    if key := settings.get("ssh_key"):
        items["ssh-keys"] = f"{settings['ssh_user']}:{key}"
    return [{"key": name, "value": value} for name, value in items.items()]


def rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(int(moment), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
