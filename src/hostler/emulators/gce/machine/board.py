"""A machine's own metadata, as its metadata server shows it, and its changes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hostler.emulators.gce.api.links import last

NUMBER = 123456789012  # of the emulated project
EMAIL = f"{NUMBER}-compute@developer.gserviceaccount.com"
SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


@dataclass
class Board:
    """Facts beside the machine's resource. `changed`, over the world's lock, is told of changes to either."""

    changed: threading.Condition
    preempted: bool = False
    maintenance: str = "NONE"
    guest_attributes: dict[str, str] = field(default_factory=dict)  # by namespace/key
    heard: Callable[[str, str], None] = lambda name, value: None  # is told of each of them

    def tell(self, **facts: object) -> None:
        with self.changed:
            for name, value in facts.items():
                setattr(self, name, value)
            self.changed.notify_all()


def attributes(body: Mapping[str, Any]) -> dict[str, str]:
    items = body.get("metadata", {}).get("items", [])
    return {item["key"]: item.get("value", "") for item in items}


def tree(project: str, body: Mapping[str, Any], board: Board) -> dict[str, Any]:
    """All of `/computeMetadata/v1`, with the names it has in JSON."""
    return {
        "instance": _instance(project, body, board),
        "project": {"projectId": project, "numericProjectId": NUMBER, "attributes": {}},
        "universe": {"universeDomain": "googleapis.com"},
    }


def _instance(project: str, body: Mapping[str, Any], board: Board) -> dict[str, Any]:
    name, zone, account = body["name"], last(body["zone"]), _account(body)
    shown: dict[str, Any] = {
        "attributes": attributes(body),
        "cpuPlatform": "Emulated",
        "description": body.get("description", ""),
        "disks": [
            {
                "deviceName": disk["deviceName"],
                "index": disk["index"],
                "mode": disk["mode"],
                "type": "PERSISTENT",
            }
            for disk in body.get("disks", [])
        ],
        "guestAttributes": _nested(board.guest_attributes),
        "hostname": f"{name}.{zone}.c.{project}.internal",
        "id": int(body["id"]),
        "image": "",
        "machineType": f"projects/{NUMBER}/machineTypes/{last(body['machineType'])}",
        "maintenanceEvent": board.maintenance,
        "name": name,
        "networkInterfaces": [
            _interface(network_interface) for network_interface in body.get("networkInterfaces", [])
        ],
        "preempted": _word(board.preempted),
        "scheduling": _scheduling(body.get("scheduling", {})),
        "serviceAccounts": {"default": account, account["email"]: account},
        "tags": body.get("tags", {}).get("items", []),
        "zone": f"projects/{NUMBER}/zones/{zone}",
    }
    return shown


def _account(body: Mapping[str, Any]) -> dict[str, Any]:
    given = (body.get("serviceAccounts") or [{}])[0]
    email = given.get("email", "default")
    named = EMAIL if email == "default" else email
    return {"aliases": ["default"], "email": named, "scopes": given.get("scopes", SCOPES)}


def _interface(one: Mapping[str, Any]) -> dict[str, Any]:
    outside = [
        {"externalIp": config["natIP"], "type": "ONE_TO_ONE_NAT"} for config in one.get("accessConfigs", [])
    ]
    return {
        "ip": one["networkIP"],
        "accessConfigs": outside,
        "network": f"projects/{NUMBER}/networks/default",
    }


def _scheduling(given: Mapping[str, Any]) -> dict[str, str]:
    return {
        "automaticRestart": _word(given.get("automaticRestart", True)),
        "onHostMaintenance": given.get("onHostMaintenance", "MIGRATE"),
        "preemptible": _word(given.get("preemptible", False)),
    }


def _nested(flat: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for path, value in flat.items():
        namespace, _, key = path.partition("/")
        found.setdefault(namespace, {})[key] = value
    return found


def _word(value: object) -> str:
    return "TRUE" if value else "FALSE"


def etag(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
