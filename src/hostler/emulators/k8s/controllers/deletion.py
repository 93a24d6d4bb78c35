"""How an object goes: at once, or when its finalizers are done; a pod when its processes have ended, too."""

from __future__ import annotations

import copy

from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.resources import JOBS, NAMESPACES, of
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World
from hostler.frozen import dataclass

BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"
FINALIZERS = {FOREGROUND: "foregroundDeletion", ORPHAN: "orphan"}
PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
    "them or set propagationPolicy=Orphan to suppress this warning"
)


@dataclass(frozen=True)
class Options:
    grace: int | None = None
    propagation: str = ""


def delete(world: World, thing: Obj, options: Options) -> Obj:
    """The object as it is afterwards, or as it was last."""
    pod = thing["kind"] == "Pod"
    grace = _grace(thing, options) if pod else 0
    policy = options.propagation or (ORPHAN if of(thing) == JOBS else BACKGROUND)

    def act(one: Obj) -> None:
        meta = one["metadata"]
        known = meta.get("deletionTimestamp")
        if not known and "generation" in meta:
            meta["generation"] += 1
        if not known or (pod and grace < meta.get("deletionGracePeriodSeconds", 0)):
            meta["deletionTimestamp"] = stamp(world.clock() + grace)
            meta["deletionGracePeriodSeconds"] = grace
        word = FINALIZERS.get(policy)
        if word and word not in meta.get("finalizers", []):
            meta["finalizers"] = [*meta.get("finalizers", []), word]
        if of(one) == NAMESPACES:
            one["status"] = {"phase": "Terminating"}

    after = copy.deepcopy(thing)
    act(after)
    if removable(after):
        return world.storage.remove(thing)
    return world.storage.change(thing, act)


def settle(world: World, thing: Obj) -> Obj:
    """Remove what is to go and is held by nothing any more."""
    return world.storage.remove(thing) if removable(thing) else thing


def removable(thing: Obj) -> bool:
    meta = thing["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or thing["kind"] == "Namespace":
        return False
    return thing["kind"] != "Pod" or _stopped(thing)


def release(world: World, thing: Obj, finalizer: str) -> Obj:
    """Removes a finalizer that is done."""
    if finalizer not in thing["metadata"].get("finalizers", []):
        return thing

    def act(one: Obj) -> None:
        left = [word for word in one["metadata"].pop("finalizers", []) if word != finalizer]
        if left:
            one["metadata"]["finalizers"] = left

    return settle(world, world.storage.change(thing, act))


def _grace(pod: Obj, options: Options) -> int:
    if not pod["spec"].get("nodeName") or pod["status"]["phase"] in ("Succeeded", "Failed"):
        return 0
    given = pod["spec"].get("terminationGracePeriodSeconds", 30) if options.grace is None else options.grace
    return int(given)


def _stopped(pod: Obj) -> bool:
    if pod["metadata"].get("deletionGracePeriodSeconds", 0) == 0:
        return True
    return pod["status"]["phase"] in ("Succeeded", "Failed")
