"""A VM whose run was out of memory asks for a machine of its launch that has a larger GPU."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from gce_oracle import check_seen
from hostler.backends.base import Launch
from hostler.backends.capacity import MachineGroup
from hostler.backends.gce import groups, plans, reasons, removal
from hostler.backends.gce.client import GceClient, GceRefusal
from hostler.backends.gce.host import GceHost, Vm
from hostler.backends.gce.plans import Requests
from hostler.backends.gce.wish import larger
from hostler.emulators.gce import Pace, emulator
from hostler.spec.project import Fleet

GB = 10**9
T4, L4, A100 = 15.8 * GB, 24.1 * GB, 42.4 * GB  # as drivers tell it


@pytest.fixture(scope="module")
def made() -> Requests:
    options = {"project": "p", "zones": ("us",), "gpu": ("T4:1", "L4:1", "A100:1")}
    fleet = Fleet("burst", "gce", workers=4, options=options, scope="s", store="gs://b/s")
    return plans.requests(fleet, Launch("gs://b/s", generation="burst/1", at=1e9), "p")


def every(made: Requests) -> tuple[MachineGroup, ...]:
    return (*made.groups, *made.spare)


def of_gpu(made: Requests, gpu: str) -> MachineGroup:
    return next(group for group in every(made) if made.chosen[group.name][0].gpu == gpu)


class Cloud(GceClient):
    """Templates and groups as they were asked for."""

    def __init__(self, made: Requests, sizes: dict[str, int]) -> None:
        super().__init__("p")
        self.sizes, self.new = sizes, dict[str, dict[str, Any]]()
        self.there = {f"global/instanceTemplates/{g.name}": made.template_of(g) for g in made.groups}
        self.late = False  # another VM was faster

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        return self.there[path]

    def find(self, path: str, **query: str | int) -> dict[str, Any] | None:
        if path in self.sizes:
            return {"targetSize": self.sizes[path]}
        return self.there.get(path) or ({} if self.late else None)

    def insert(self, path: str, body: dict[str, Any]) -> None:
        if self.late:
            raise GceRefusal("", reasons.reason("alreadyExists"), "alreadyExists", "", 409)
        self.new[path] = body

    def change(self, verb: str, path: str, body: Any = None, **query: Any) -> None:
        self.sizes[path.removesuffix("/resize")] = query["size"]


def asked(
    made: Requests, client: Cloud, size: float, hourly: float = 9.0, *, instead: bool = False, by: str = ""
) -> str:
    host = GceHost()
    first = of_gpu(made, by) if by else made.groups[0]
    host.vm = Vm(f"{first.name}-abcd", first.zones[0], made.settings, client)
    return host.enlarge(int(size), hourly, instead=instead)


def cloud(made: Requests, **sizes: int) -> Cloud:
    there = {groups.path(made.groups[0]): 2, **{groups.path(of_gpu(made, k)): n for k, n in sizes.items()}}
    return Cloud(made, there)


@pytest.mark.parametrize(("size", "gpu"), [(T4, "L4"), (L4, "A100")])
def test_next_larger_machine_is_made_as_its_launch_would(made: Requests, size: float, gpu: str) -> None:
    client, group = cloud(made), of_gpu(made, gpu)
    assert asked(made, client, size) == made.machine_of(group)
    assert client.new["global/instanceTemplates"] == made.template_of(group)
    assert client.new[f"regions/{group.region}/instanceGroupManagers"] == made.group(replace(group, size=1))


def test_largest_gpu_has_no_larger_one(made: Requests) -> None:
    client = cloud(made)
    assert asked(made, client, A100) == "" and not client.new


def test_machine_never_asks_for_another_of_its_own(made: Requests) -> None:
    """A run that outgrew a T4 does not fit the machine with an L4, for whatever reason."""
    client = cloud(made, L4=1, A100=1)
    assert asked(made, client, T4, by="L4", instead=True) == made.machine_of(of_gpu(made, "A100"))
    client = cloud(made, A100=1)
    assert asked(made, client, L4, by="A100", instead=True) == "" and not client.new


def test_machine_beyond_an_hours_money_is_not_asked_for(made: Requests) -> None:
    group = of_gpu(made, "A100")
    small, large = made.chosen[made.groups[0].name][1], made.chosen[group.name][1]
    client = cloud(made)
    assert asked(made, client, L4, hourly=2 * small + large - 0.001) == "" and not client.new
    assert asked(made, client, L4, hourly=2 * small + large) == made.machine_of(group)


def test_machine_that_leaves_makes_room_for_a_larger_one(made: Requests) -> None:
    """Two small ones are there: without the one that asks, an hour costs one of them and the larger one."""
    group = of_gpu(made, "L4")
    small, large = made.chosen[made.groups[0].name][1], made.chosen[group.name][1]
    client = cloud(made)
    assert asked(made, client, T4, hourly=small + large) == "" and not client.new
    assert asked(made, client, T4, hourly=small + large - 0.001, instead=True) == "" and not client.new
    assert asked(made, client, T4, hourly=small + large, instead=True) == made.machine_of(group)


def test_machine_on_its_way_is_not_asked_for_twice(made: Requests) -> None:
    client = cloud(made, L4=1)
    assert asked(made, client, T4) == made.machine_of(of_gpu(made, "L4")) and not client.new
    left = cloud(made, L4=0)
    assert asked(made, left, T4) and left.sizes[groups.path(of_gpu(made, "L4"))] == 1 and not left.new
    beside = cloud(made)
    beside.late = True
    assert asked(made, beside, T4) == made.machine_of(of_gpu(made, "L4"))


def test_launch_of_one_size_tells_its_vms_nothing() -> None:
    options = {"project": "p", "zones": ("us",), "gpu": ("T4:1", "V100:1")}
    fleet = Fleet("burst", "gce", workers=4, options=options, scope="s", store="gs://b/s")
    told = plans.requests(fleet, Launch("gs://b/s", generation="burst/1", at=1e9), "p").settings
    assert "larger" not in told and "prices" not in told


def test_worker_of_the_larger_machine_is_told_its_price(made: Requests) -> None:
    row = next(one for one in made.settings["larger"] if one["machine"] == "a2-highgpu-1g")
    body = larger.template(made.template_of(made.groups[0]), row)
    items = {item["key"]: item["value"] for item in body["properties"]["metadata"]["items"]}
    words = json.loads(items["hostler-settings"])["worker"]
    assert float(words[words.index("--price") + 1]) == pytest.approx(row["price"], rel=1e-4)


def test_emulator_takes_template_and_group_of_a_larger_gpu() -> None:
    with emulator(strict=True, pace=Pace(operation=0.01)) as gce:
        client = GceClient(gce.project, gce.url, gce._world.tokens.issue, patience=2.0)
        options = {"project": gce.project, "zones": ("us-central1",), "gpu": ("T4:1", "L4:1")}
        fleet = Fleet("burst", "gce", workers=4, options=options, scope="s", store="gs://b/s")
        launch = Launch("gs://b/s", generation="burst/1", at=time.time())
        made = plans.requests(fleet, launch, gce.project)
        for zone in "abcf":
            gce.stockout(f"us-central1-{zone}")  # no VM is to come up here
        for path, body in made:
            client.insert(path, {**body, "targetSize": 0} if "targetSize" in body else body)
        host, first = GceHost(), made.groups[0]
        host.vm = Vm(f"{first.name}-abcd", first.zones[0], made.settings, client)
        assert host.enlarge(int(T4), 9.0) == host.enlarge(int(T4), 9.0) == "g2-standard-8"
        group = of_gpu(made, "L4")
        there = client.get(groups.path(group))
        assert there["targetSize"] == 1 and there["instanceTemplate"].endswith(group.name)
        copied = client.get(f"global/instanceTemplates/{group.name}")["properties"]
        assert copied["machineType"].endswith("g2-standard-8") and "guestAccelerators" not in copied
        removal.tear_down(client, made.settings["groups"], made.settings["templates"])
        assert gce.left() == []  # who takes the launch down knows of it
        check_seen(gce.requests)
