"""A small client of the Compute Engine API for tests of the emulator, and machines to ask it for."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any

from hostler.emulators.gce import GceEmulator

REGION, ZONE = "us-central1", "us-central1-a"
IMAGE = "projects/debian-cloud/global/images/family/debian-12"
LABELS = {"hostler-fleet": "burst"}
PATIENCE = 20.0
IDLE = "while true; do sleep 0.05; done"


class Refused(Exception):
    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {body}")
        self.status, self.error = status, body["error"]

    @property
    def reason(self) -> str:
        return str(self.error["errors"][0]["reason"])


class Api:
    def __init__(self, gce: GceEmulator) -> None:
        self.gce = gce

    def call(self, method: str, path: str, body: object = None, *, project: str = "", **query: object) -> Any:
        """What the API answers; `path` is behind the project."""
        url = f"{self.gce.url}/projects/{project or self.gce.project}{path}"
        url += f"?{urllib.parse.urlencode(query)}" if query else ""
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, data, method=method), timeout=30
            ) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(error.code, json.load(error)) from None

    def get(self, path: str, **query: object) -> Any:
        return self.call("GET", path, **query)

    def finished(self, operation: dict[str, Any]) -> dict[str, Any]:
        """The operation, done, whatever came of it."""
        path = operation["selfLink"].partition(f"/projects/{self.gce.project}")[2]
        while operation["status"] != "DONE":
            operation = self.call("POST", f"{path}/wait")
        return operation

    def do(self, method: str, path: str, body: object = None, **query: object) -> dict[str, Any]:
        """The operation of a request, done and well."""
        done = self.finished(self.call(method, path, body, **query))
        assert "error" not in done, done["error"]
        return done

    def insert(self, name: str = "one", zone: str = ZONE, **more: Any) -> dict[str, Any]:
        kind = f"zones/{zone}/machineTypes/{more.pop('machine', 'e2-small')}"
        return self.do(
            "POST", f"/zones/{zone}/instances", {**properties(**more), "name": name, "machineType": kind}
        )

    def template(self, name: str = "t", **more: Any) -> dict[str, Any]:
        return self.do("POST", "/global/instanceTemplates", {"name": name, "properties": properties(**more)})

    def group(self, size: int, name: str = "g", template: str = "t", **more: Any) -> dict[str, Any]:
        """A regional one that takes what it gets."""
        body = {
            "name": name,
            "instanceTemplate": f"global/instanceTemplates/{template}",
            "targetSize": size,
            "distributionPolicy": {"targetShape": "ANY", **more},
            "updatePolicy": {"instanceRedistributionType": "NONE"},
        }
        return self.do("POST", f"/regions/{REGION}/instanceGroupManagers", body)

    def managed(self, name: str = "g") -> list[dict[str, Any]]:
        found = self.call("POST", f"{group_path(name)}/listManagedInstances")
        return list(found.get("managedInstances", []))

    def target(self, name: str = "g") -> int:
        return int(self.get(group_path(name))["targetSize"])

    def running(self, count: int) -> list[str]:
        """The names of the machines, once there are so many that run and no others."""
        until(lambda: len(self.gce.names()) == count == len(self.gce.machines()), f"{count} machines")
        return self.gce.names()

    def said(self, name: str, words: str) -> str:
        """The serial port's text, once it has these words."""
        until(lambda: words in self.gce.serial(name), f"{words!r} on the serial port of {name}")
        return self.gce.serial(name)


def group_path(name: str = "g") -> str:
    return f"/regions/{REGION}/instanceGroupManagers/{name}"


def instance_url(name: str, zone: str) -> str:
    return f"zones/{zone}/instances/{name}"


def properties(
    script: str = IDLE,
    *,
    spot: bool = True,
    shutdown: str = "",
    metadata: dict[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Of a small machine that runs a script; `more` are other fields, `scheduling` merged."""
    items = {
        "startup-script": script,
        **({"shutdown-script": shutdown} if shutdown else {}),
        **(metadata or {}),
    }
    scheduling = {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE"} if spot else {}
    scheduling |= more.pop("scheduling", {})
    made = {"sourceImage": IMAGE, "diskSizeGb": "20", "labels": LABELS}
    return {
        "machineType": "e2-small",
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": made}],
        "networkInterfaces": [
            {"network": "global/networks/default", "accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}
        ],
        "labels": LABELS,
        "scheduling": scheduling,
        "metadata": {"items": [{"key": key, "value": value} for key, value in items.items()]},
        **more,
    }


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"there was never {what}"
        time.sleep(0.01)
