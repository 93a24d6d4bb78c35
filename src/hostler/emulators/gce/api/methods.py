"""Every method of the API that the emulator knows, by its name in Google's document.

Methods of operations and of advice are here, those of each other resource in a file of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from hostler.emulators.gce.api import disks, groups, images, instances, offers, templates
from hostler.emulators.gce.api.call import Call
from hostler.emulators.gce.api.links import last, link
from hostler.emulators.gce.api.operations import WAIT, Operation
from hostler.emulators.gce.api.pages import aggregated, listing
from hostler.emulators.gce.api.refusal import invalid, required
from hostler.emulators.gce.catalog import machine_type, zones_of
from hostler.emulators.gce.stock import Need
from hostler.emulators.gce.world import World

Body = dict[str, Any]

# Where capacity is likely: `advice.capacity` and `advice.capacityHistory`, from the emulator's own stock.
_DAYS = 3


def capacity(world: World, call: Call) -> Body:
    """Recommend the first zone that has machines for all of them; none, a score of 0."""
    selections = call.body.get("instanceFlexibilityPolicy", {}).get("instanceSelections", {})
    named = [name for selection in selections.values() for name in selection.get("machineTypes", [])]
    if not named:
        raise required("instanceFlexibilityPolicy.instanceSelections")
    model = _model(call)
    asked = [last(one["zone"]) for one in call.body.get("distributionPolicy", {}).get("zones", [])]
    places = [(zone, name) for name in named for zone in asked or zones_of(call.scope.place)]
    has = [place for place in places if _has(world, *place, spot=model == "SPOT")]
    zone, name = (has or places)[0]
    shard = {"zone": zone, "machineType": name, "instanceCount": int(call.body.get("size", 1))}
    scores: Body = {"obtainability": 0.9 if has else 0.0, "estimatedUptime": "86400s" if has else "0s"}
    return {"recommendations": [{"scores": scores, "shards": [{**shard, "provisioningModel": model}]}]}


def history(world: World, call: Call) -> Body:
    """A few days of preemptions and prices; a zone that is short of spot preempts more."""
    properties = call.body.get("instanceProperties", {})
    name = last(properties.get("machineType", ""))
    if not name:
        raise required("instanceProperties.machineType")
    place = last(call.body.get("locationPolicy", {}).get("location", "")) or call.scope.place
    zones = zones_of(place) or [place]
    has = all(_has(world, zone, name, spot=True) for zone in zones)
    kind = "regions" if zones_of(place) else "zones"
    answer: Body = {"machineType": name, "location": link(f"projects/{world.project}/{kind}/{place}")}
    types = call.body.get("types", [])
    if "PREEMPTION" in types:
        rate = 0.05 if has else 0.6
        answer["preemptionHistory"] = [{"interval": day, "preemptionRate": rate} for day in _days()]
    if "PRICE" in types:
        price = {"currencyCode": "USD", "units": "0", "nanos": 100000000}
        answer["priceHistory"] = [{"interval": day, "listPrice": price} for day in _days()]
    return answer


def get_operation(world: World, call: Call) -> Body:
    return world.operations.get(call.scope, call.name).body


def list_operations(world: World, call: Call) -> Body:
    rows = [operation.body for operation in world.operations.of(call.scope)]
    return listing("compute#operationList", f"{call.scope.path}/operations", rows, call.query)


def all_operations(world: World, call: Call) -> Body:
    by_place: dict[str, list[Body]] = {"global": []}
    for operation in world.operations.of():
        by_place.setdefault(operation.scope.short, []).append(operation.body)
    path = f"projects/{world.project}/aggregated/operations"
    return aggregated("compute#operationAggregatedList", path, "operations", by_place, call.query)


def delete_operation(world: World, call: Call) -> Body:
    world.operations.delete(call.scope, call.name)
    return {}


def wait_for_operation(world: World, call: Call) -> Body:
    """Wait for the end, at most two minutes. Takes the lock itself, and not while it waits."""
    with world.lock:
        operation: Operation = world.operations.get(call.scope, call.name)
    operation.done.wait(world.clock.real(WAIT))
    with world.lock:
        return dict(operation.body)


def _model(call: Call) -> str:
    return str(call.body.get("instanceProperties", {}).get("scheduling", {}).get("provisioningModel", "SPOT"))


def _has(world: World, zone: str, name: str, *, spot: bool) -> bool:
    kind = machine_type(name)
    if kind is None:
        raise invalid("machineType", name, "The referenced resource does not exist.")
    return world.stock.has(Need(zone, kind, spot), world.taken())


def _days() -> list[Body]:
    now = datetime.fromtimestamp(time.time(), timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    ends = [now - timedelta(days=back) for back in range(_DAYS)]
    return [{"startTime": _utc(end - timedelta(days=1)), "endTime": _utc(end)} for end in ends]


def _utc(when: datetime) -> str:
    return when.isoformat().replace("+00:00", "Z")


Handler = Callable[[World, Call], dict[str, Any]]

_GROUPS: dict[str, Handler] = {
    "insert": groups.insert,
    "get": groups.get,
    "list": groups.list_,
    "delete": groups.delete,
    "patch": groups.patch,
    "resize": groups.resize,
    "listManagedInstances": groups.managed_instances,
    "deleteInstances": groups.delete_instances,
    "abandonInstances": groups.abandon_instances,
    "listErrors": groups.list_errors,
}
_TEMPLATES: dict[str, Handler] = {
    "insert": templates.insert,
    "get": templates.get,
    "list": templates.list_,
    "delete": templates.delete,
}
_OPERATIONS: dict[str, Handler] = {
    "get": get_operation,
    "list": list_operations,
    "delete": delete_operation,
    "wait": wait_for_operation,
}
_INSTANCES: dict[str, Handler] = {
    "insert": instances.insert,
    "get": instances.get,
    "list": instances.list_,
    "aggregatedList": instances.aggregated_list,
    "delete": instances.delete,
    "stop": instances.stop,
    "start": instances.start,
    "reset": instances.reset,
    "setMetadata": instances.set_metadata,
    "setLabels": instances.set_labels,
    "getSerialPortOutput": instances.serial_port,
    "getGuestAttributes": instances.guest_attributes,
    "simulateMaintenanceEvent": instances.simulate_maintenance,
}
_DISKS: dict[str, Handler] = {
    "insert": disks.insert,
    "get": disks.find,
    "list": disks.list_,
    "aggregatedList": disks.aggregated_list,
    "delete": disks.delete,
}
_IMAGES: dict[str, Handler] = {
    "insert": images.insert,
    "get": images.get,
    "getFromFamily": images.get_from_family,
    "list": images.list_,
    "delete": images.delete,
    "patch": images.patch,
    "deprecate": images.deprecate,
}
_MEMBERSHIP: dict[str, Handler] = {"get": groups.get_plain, "list": groups.list_plain}
_OFFERS: dict[str, Handler] = {
    "projects.get": offers.project,
    "regions.get": offers.region,
    "regions.list": offers.regions,
    "zones.get": offers.zone,
    "zones.list": offers.zones,
    "machineTypes.get": offers.machine_type_,
    "machineTypes.list": offers.machine_types_,
    "machineTypes.aggregatedList": offers.all_machine_types,
    "acceleratorTypes.get": offers.accelerator,
    "acceleratorTypes.list": offers.accelerators,
    "acceleratorTypes.aggregatedList": offers.all_accelerators,
    "diskTypes.get": offers.disk_type,
    "diskTypes.list": offers.disk_types,
    "advice.capacity": capacity,
    "advice.capacityHistory": history,
}


def methods() -> dict[str, Handler]:
    collections = {
        "instances": _INSTANCES,
        "disks": _DISKS,
        "images": _IMAGES,
        "instanceTemplates": {**_TEMPLATES, "aggregatedList": templates.aggregated_list},
        "regionInstanceTemplates": _TEMPLATES,
        "instanceGroupManagers": {**_GROUPS, "aggregatedList": groups.aggregated_list},
        "regionInstanceGroupManagers": _GROUPS,
        "instanceGroups": _MEMBERSHIP,
        "regionInstanceGroups": _MEMBERSHIP,
        "zoneOperations": _OPERATIONS,
        "regionOperations": _OPERATIONS,
        "globalOperations": {**_OPERATIONS, "aggregatedList": all_operations},
    }
    named = {f"{name}.{verb}": act for name, verbs in collections.items() for verb, act in verbs.items()}
    return {**named, **_OFFERS}
