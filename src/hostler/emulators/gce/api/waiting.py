"""Requests about operations: `zoneOperations.*`, `regionOperations.*`, `globalOperations.*`."""

from __future__ import annotations

from typing import Any

from hostler.emulators.gce.api.call import Call
from hostler.emulators.gce.api.operations import WAIT, Operation
from hostler.emulators.gce.api.pages import aggregated, listing
from hostler.emulators.gce.world import World

Body = dict[str, Any]


def get(world: World, call: Call) -> Body:
    return world.operations.get(call.scope, call.name).body


def list_(world: World, call: Call) -> Body:
    rows = [operation.body for operation in world.operations.of(call.scope)]
    return listing("compute#operationList", f"{call.scope.path}/operations", rows, call.query)


def aggregated_list(world: World, call: Call) -> Body:
    by_place: dict[str, list[Body]] = {"global": []}
    for operation in world.operations.of():
        by_place.setdefault(operation.scope.short, []).append(operation.body)
    path = f"projects/{world.project}/aggregated/operations"
    return aggregated("compute#operationAggregatedList", path, "operations", by_place, call.query)


def delete(world: World, call: Call) -> Body:
    world.operations.delete(call.scope, call.name)
    return {}


def wait(world: World, call: Call) -> Body:
    """Wait for the end, at most two minutes. Takes the lock itself, and not while it waits."""
    with world.lock:
        operation: Operation = world.operations.get(call.scope, call.name)
    operation.done.wait(world.clock.real(WAIT))
    with world.lock:
        return dict(operation.body)
