"""What the emulator lists: by page and filter, by place, what there is to be had, images, operations."""

from __future__ import annotations

import pytest

import servers
from gce_api import REGION, ZONE, Api, Refused, properties

servers.library("googleapiclient")
SCALE = 60.0


def test_lists_are_filtered_and_come_in_pages(api: Api) -> None:
    for number in range(5):
        body = {"name": f"t{number}", "properties": properties()}
        api.call("POST", "/global/instanceTemplates", body)
    found, token = [], ""
    while token is not None:
        page = api.get("/global/instanceTemplates", maxResults=2, **({"pageToken": token} if token else {}))
        found.append([one["name"] for one in page["items"]])
        token = page.get("nextPageToken")
    assert found == [["t0", "t1"], ["t2", "t3"], ["t4"]]
    some = api.get("/global/instanceTemplates", filter="name eq 't[12]'")["items"]
    assert [one["name"] for one in some] == ["t1", "t2"]
    assert "items" not in api.get("/global/instanceTemplates", filter="name=nothing")
    with pytest.raises(Refused, match="filter"):
        api.get("/global/instanceTemplates", filter="name ==")


def test_machines_are_found_by_label_over_all_zones(api: Api) -> None:
    api.insert("one")
    api.insert("two", zone="us-east1-b", labels={"hostler-fleet": "other"})
    found = api.get("/aggregated/instances", filter="labels.hostler-fleet=burst AND status=RUNNING")["items"]
    assert {name: len(one.get("instances", [])) for name, one in found.items() if "instances" in one} == {
        f"zones/{ZONE}": 1
    }
    assert found["zones/us-east1-b"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"


def test_what_there_is_to_be_had_is_listed(api: Api) -> None:
    assert {"us-central1", "us-east1"} <= {one["name"] for one in api.get("/regions")["items"]}
    assert api.get(f"/zones/{ZONE}")["region"].endswith(f"/regions/{REGION}")
    assert len(api.get("/zones", filter="region eq '.*us-east1'")["items"]) == 3
    assert (
        api.get(f"/zones/{ZONE}/machineTypes/g2-standard-4")["accelerators"][0]["guestAcceleratorCount"] == 1
    )
    assert api.get(f"/zones/{ZONE}/machineTypes/n2-custom-6-9216")["memoryMb"] == 9216
    assert "nvidia-l4" in {one["name"] for one in api.get(f"/zones/{ZONE}/acceleratorTypes")["items"]}
    assert api.get("/aggregated/acceleratorTypes")["items"] and api.get("/aggregated/machineTypes")["items"]
    assert api.get(f"/zones/{ZONE}/diskTypes/pd-ssd")["name"] == "pd-ssd"
    with pytest.raises(Refused, match="404"):
        api.get("/zones/mars-central1-a")


def test_images_are_made_of_disks_and_found_by_family(api: Api) -> None:
    api.insert(spot=False)
    source = {"sourceDisk": f"zones/{ZONE}/disks/one", "family": "mine"}
    done = api.finished(api.call("POST", "/global/images", {"name": "early", **source}))
    assert "in use" in str(done["error"])
    api.do("POST", f"/zones/{ZONE}/instances/one/stop")
    for name in ("first", "second"):
        api.do("POST", "/global/images", {"name": name, **source})
    assert api.get("/global/images/family/mine")["name"] == "second"
    api.do("POST", "/global/images/second/deprecate", {"state": "DEPRECATED"})
    assert api.get("/global/images/family/mine")["name"] == "first"
    api.do("DELETE", "/global/images/first")
    with pytest.raises(Refused, match="404"):
        api.get("/global/images/family/mine")
    public = api.call("GET", "/global/images/family/debian-12", project="debian-cloud")
    assert public["selfLink"].endswith(f"/projects/debian-cloud/global/images/{public['name']}")


def test_capacity_is_advised_where_there_is_some(api: Api) -> None:
    api.gce.stockout(ZONE, spot_only=True)
    asked = {
        "instanceProperties": {"scheduling": {"provisioningModel": "SPOT"}},
        "instanceFlexibilityPolicy": {"instanceSelections": {"any": {"machineTypes": ["e2-small"]}}},
        "size": 4,
    }
    (found,) = api.call("POST", f"/regions/{REGION}/advice/capacity", asked)["recommendations"]
    assert (found["shards"][0]["zone"], found["shards"][0]["instanceCount"]) == ("us-central1-b", 4)
    asked = {"instanceProperties": {"machineType": "e2-small"}, "types": ["PREEMPTION", "PRICE"]}
    history = api.call("POST", f"/regions/{REGION}/advice/capacityHistory", asked)
    assert history["preemptionHistory"][0]["preemptionRate"] > 0.5 and history["priceHistory"]


def test_operations_are_listed_and_forgotten_on_request(api: Api) -> None:
    done = api.template()
    assert [one["name"] for one in api.get("/global/operations")["items"]] == [done["name"]]
    assert api.get("/aggregated/operations")["items"]["global"]["operations"][0]["name"] == done["name"]
    api.call("DELETE", f"/global/operations/{done['name']}")
    with pytest.raises(Refused, match="404"):
        api.get(f"/global/operations/{done['name']}")
