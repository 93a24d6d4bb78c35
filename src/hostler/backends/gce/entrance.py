"""The way of a person onto a VM: its address, the account, and its host keys as it told them itself.

A VM tells Compute Engine its host keys by guest attributes when it starts, and only it can: so they are
known before the first connection, and checks are never switched off.
"""

from __future__ import annotations

from hostler.backends.base import Address
from hostler.backends.gce.client import Body, GceClient
from hostler.backends.gce.names import KEPT, GceOwner, last
from hostler.backends.gce.plans import USER
from hostler.errors import CloudUnavailable, MissingError

KEYS = "hostkeys/"  # the guest attributes in which Google's own agent tells them


def address(client: GceClient, owner: GceOwner, machine: str) -> Address:
    """Address of the VM of this name; '' is the one for hand work, or the only one."""
    running = [
        body
        for body in client.aggregated("instances", filter=owner.filter)
        if body.get("status") == "RUNNING" and machine in ("", body["name"])
    ]
    if not running:
        what = f"VM {machine}" if machine else "VM"
        raise MissingError(
            f"no {what} of fleet {owner.fleet} runs", f"hostler up --keep {owner.fleet} starts one"
        )
    by_hand = [body for body in running if body["name"] == owner.name(KEPT)]
    if not machine and by_hand:
        running = by_hand
    if len(running) > 1:
        raise MissingError(
            f"fleet {owner.fleet} has {len(running)} VMs: name one of them",
            ", ".join(body["name"] for body in running),
        )
    [body] = running
    return Address(body["name"], _ip(body), USER, _host_keys(client, body))


def _ip(body: Body) -> str:
    for interface in body.get("networkInterfaces", ()):
        for access in interface.get("accessConfigs", ()):
            if access.get("natIP"):
                return str(access["natIP"])
        if interface.get("networkIP"):
            return str(interface["networkIP"])
    raise CloudUnavailable(f"{body['name']} has no address yet", "try again in a moment")


def _host_keys(client: GceClient, body: Body) -> tuple[str, ...]:
    path = f"zones/{last(body['zone'])}/instances/{body['name']}/getGuestAttributes"
    record = client.find(path, queryPath=KEYS) or {}
    items = (record.get("queryValue") or {}).get("items") or ()
    keys = tuple(f"{item['key']} {item['value']}" for item in items)
    if not keys:
        raise CloudUnavailable(
            f"{body['name']} has not published its host keys yet",
            "wait until it has started: without them its identity cannot be checked",
        )
    return keys
