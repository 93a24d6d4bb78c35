"""A machine with a larger GPU for a launch, asked for by a VM on whose GPU a run was out of memory.

A launch that chooses machines by price tells its VMs which of its candidates have larger GPUs. Such a VM
copies its own template for the next larger one, and makes a group of one machine. An hour of all machines of
the launch never costs more than what was reserved for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hostler.backends.capacity import MachineGroup
from hostler.backends.gce import groups, shape
from hostler.backends.gce.client import GceClient, GceRefusal
from hostler.backends.gce.names import last
from hostler.backends.gce.shape import VmShape

SETTINGS = "hostler-settings"

Body = dict[str, Any]


def told(made: Sequence[MachineGroup], chosen: Mapping[str, tuple[VmShape, float]]) -> Body:
    """Settings for VMs: each GPU where it is cheapest, the smallest first, and the price of every group.
    Nothing where all have the same memory. Pure."""
    rows: dict[str, Body] = {}
    for group in made:  # the cheapest first
        vm_shape, price = chosen[group.name]
        if vm_shape.gpu:
            rows.setdefault(vm_shape.gpu, _row(group, vm_shape, price))
    ordered = sorted(rows.values(), key=lambda row: (row["gpu_memory"], row["price"]))
    if len({row["gpu_memory"] for row in ordered}) < 2:
        return {}
    return {
        "larger": ordered,
        "prices": {groups.path(machine_group): chosen[machine_group.name][1] for machine_group in made},
    }


def _row(group: MachineGroup, found: VmShape, price: float) -> Body:
    attached = {"gpu": shape.GPUS[found.gpu].type, "gpus": found.gpus} if found.attached else {}
    return {
        "gpu_memory": shape.gpu_bytes(found.gpu),
        "machine": found.machine,
        **attached,
        "group": group.name,
        "region": group.region,
        "zones": list(group.zones),
        "spot": group.spot,
        "price": price,
    }


def enlarge(
    client: GceClient,
    settings: Mapping[str, Any],
    own: str,
    sizes: Mapping[str, int],
    size: int,
    hourly: float,
) -> str:
    """Ask for one machine whose GPU has more than so many bytes. Answers its type, also where it is on its
    way; '' where the launch has none such, or an hour of all would cost more than `hourly`. `own`: the group
    of the VM that asks."""
    rows = (one for one in settings.get("larger", ()) if one["gpu_memory"] > size)
    # One more of its own group would be too small, too.
    row = next((one for one in rows if groups.path(_group(one)) != own), None)
    if row is None:
        return ""
    group = _group(row)
    path, machine = groups.path(group), str(row["machine"])
    if sizes.get(path, 0):
        return machine
    if not affordable(sizes, settings["prices"], row["price"], hourly):
        return ""
    if path in sizes:
        client.change("POST", f"{path}/resize", size=1)
        return machine
    mine = client.get(f"global/instanceTemplates/{last(own)}")
    _make(client, "global/instanceTemplates", template(mine, row))
    url = f"projects/{client.project}/"
    name = f"{url}global/instanceTemplates/{group.name}"
    _make(client, path.rpartition("/")[0], groups.body(group, name, mine["description"], url))
    return machine


def _group(row: Body) -> MachineGroup:
    return MachineGroup(row["region"], row["group"], tuple(row["zones"]), 1, row["spot"])


def _make(client: GceClient, path: str, body: Body) -> None:
    """Another VM may be faster: then it is there."""
    try:
        client.insert(path, body)
    except GceRefusal:
        if client.find(f"{path}/{body['name']}") is None:
            raise


def affordable(sizes: Mapping[str, int], prices: Mapping[str, float], price: float, hourly: float) -> bool:
    """Whether one more machine at this price stays within what an hour of the launch may cost. Pure."""
    dearest = max(prices.values(), default=price)
    paid = sum(count * prices.get(path, dearest) for path, count in sizes.items())
    return paid + price <= hourly * (1 + 1e-9)


def template(mine: Body, row: Body) -> Body:
    """A VM's own template with the larger machine in it. Pure."""
    given = {key: value for key, value in mine["properties"].items() if key != "guestAccelerators"}
    scheduling = {
        **given["scheduling"],
        "provisioningModel": "SPOT" if row["spot"] else "STANDARD",
        "onHostMaintenance": "TERMINATE",
    }
    gpu = [{"acceleratorType": row["gpu"], "acceleratorCount": row["gpus"]}] if row.get("gpu") else []
    items = [_priced(item, row["price"]) for item in given["metadata"]["items"]]
    changed = {"machineType": row["machine"], "scheduling": scheduling, "metadata": {"items": items}}
    more = {"guestAccelerators": gpu} if gpu else {}
    return {
        "name": row["group"],
        "description": mine["description"],
        "properties": {**given, **changed, **more},
    }


def _priced(item: Body, price: float) -> Body:
    """The settings of a VM with another price of its worker."""
    if item["key"] != SETTINGS:
        return {"key": item["key"], "value": item["value"]}
    known = json.loads(item["value"])
    words = list(known["worker"])
    words[words.index("--price") + 1] = f"{price:g}"
    return {"key": SETTINGS, "value": json.dumps({**known, "worker": words}, sort_keys=True)}
