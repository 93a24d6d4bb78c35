"""Every method of the API that the emulator knows, by its name in Google's document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostler.emulators.gce.api import (
    advice,
    disks,
    groups,
    images,
    instances,
    membership,
    offers,
    templates,
    waiting,
)
from hostler.emulators.gce.api.call import Call
from hostler.emulators.gce.world import World

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
    "get": waiting.get,
    "list": waiting.list_,
    "delete": waiting.delete,
    "wait": waiting.wait,
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
_MEMBERSHIP: dict[str, Handler] = {"get": membership.get, "list": membership.list_}
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
    "advice.capacity": advice.capacity,
    "advice.capacityHistory": advice.history,
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
        "globalOperations": {**_OPERATIONS, "aggregatedList": waiting.aggregated_list},
    }
    named = {f"{name}.{verb}": act for name, verbs in collections.items() for verb, act in verbs.items()}
    return {**named, **_OFFERS}
