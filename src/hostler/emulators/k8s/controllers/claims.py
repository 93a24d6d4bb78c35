"""Claims of volumes: one without a storage class waits for a volume that a person makes, and says so."""

from __future__ import annotations

from hostler.emulators.k8s.controllers import events
from hostler.emulators.k8s.resources import CLAIMS, EVENTS
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World

BY = "persistentvolume-controller"
REASON = "FailedBinding"
MESSAGE = "no persistent volumes available for this claim and no storage class is set"


def sync(world: World) -> None:
    for claim in world.storage.all(CLAIMS):
        if is_unbound(claim) and not _has_said(world, claim):
            events.record(world, claim, events.NORMAL, REASON, MESSAGE, BY)


def is_unbound(claim: Obj) -> bool:
    return bool(claim["spec"].get("storageClassName") == "")


def _has_said(world: World, claim: Obj) -> bool:
    known = world.storage.all(EVENTS, claim["metadata"]["namespace"])
    return any(
        (record["involvedObject"]["uid"], record["reason"]) == (claim["metadata"]["uid"], REASON)
        for record in known
    )
