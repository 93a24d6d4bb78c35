"""Images and disks of the emulator: what lies on them, families, copies; held against Google's document."""

from __future__ import annotations

from pathlib import Path

import pytest

import servers
from gce_api import ZONE, Api, Refused

servers.library("googleapiclient")
DISK = f"projects/emulated/zones/{ZONE}/disks"
WRITES = (
    "mkdir -p home/deep/bin; echo $((1 + $(cat home/n 2>/dev/null || echo 0))) > home/n; "
    "cp home/n home/deep/bin/x; "
)
IDLE = "echo n=$(cat home/n); while true; do sleep 0.05; done"


def machine(api: Api, name: str, boot: dict[str, object]) -> None:
    api.insert(name, script=WRITES + IDLE, spot=False, disks=[{"boot": True, **boot}])


def test_image_holds_its_disks_content_and_machines_start_from_it(api: Api) -> None:
    api.insert(script=WRITES + IDLE, spot=False)
    api.said("one", "n=1")
    body = {"name": "first", "sourceDisk": f"{DISK}/one", "labels": {"x": "y"}}
    busy = api.finished(api.call("POST", "/global/images", body))
    assert busy["error"]["errors"][0]["code"] == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
    api.do("POST", f"/zones/{ZONE}/instances/one/stop")
    api.do("POST", "/global/images", body)
    with pytest.raises(Refused, match="404"):
        api.get("/global/images/family/mine")
    api.do("PATCH", "/global/images/first", {"family": "mine"})
    found = api.get("/global/images/family/mine")
    assert (found["name"], found["status"], found["labels"]) == ("first", "READY", {"x": "y"})
    machine(
        api, "two", {"initializeParams": {"sourceImage": "global/images/family/mine"}, "autoDelete": True}
    )
    assert "n=2" in api.said("two", "n=") and "n=1" not in api.gce.serial("two")
    assert list(Path(api.gce._world.root).glob("two-*/home/deep/bin/x"))
    with pytest.raises(Refused, match="Only some fields"):
        api.call("PATCH", "/global/images/first", {"diskSizeGb": "20"})
    api.do("DELETE", "/global/images/first")
    with pytest.raises(Refused, match="404"):
        api.get("/global/images/first")


def test_disk_is_copied_while_its_machine_runs_and_keeps_content(api: Api) -> None:
    api.insert(script=WRITES + IDLE, spot=False)
    api.said("one", "n=1")
    api.do("POST", f"/zones/{ZONE}/disks", {"name": "copy", "sourceDisk": f"{DISK}/one"})
    assert api.get(f"/zones/{ZONE}/disks/copy")["sizeGb"] == "20"
    machine(api, "two", {"source": f"{DISK}/copy", "autoDelete": False})
    api.said("two", "n=2")
    api.do("DELETE", f"/zones/{ZONE}/instances/two")
    machine(api, "three", {"source": f"{DISK}/copy", "autoDelete": True})
    api.said("three", "n=3")
    api.do("DELETE", f"/zones/{ZONE}/instances/three")
    assert [path.rpartition("/")[2] for path in api.gce.left()] == ["one", "one"]
    with pytest.raises(Refused, match="404"):
        api.call("POST", f"/zones/{ZONE}/disks", {"name": "more", "sourceDisk": f"{DISK}/none"})
