"""Which node a pod goes to, or in the scheduler's words why none: the first decided purely, then written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from hostler.emulators.k8s.api import selectors
from hostler.emulators.k8s.controllers import claims, conditions, events
from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.resources import CLAIMS, NODES, PODS
from hostler.emulators.k8s.rules.quantity import amount
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World

Amounts = dict[str, Decimal]
BY = "default-scheduler"
_FULL = "Insufficient "


def sync(world: World) -> None:
    storage = world.storage
    for pod in storage.all(PODS):
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            continue
        if pod["status"]["phase"] == "Pending" and not pod["spec"].get("schedulingGates"):
            _place(world, pod)


def choose(pod: Obj, nodes: Sequence[Obj], others: Iterable[Obj]) -> tuple[str, str]:
    """A node's name and nothing, or nothing and the reason."""
    if not nodes:
        return "", "no nodes available to schedule pods"
    used: dict[str, list[Obj]] = {}
    for other in others:
        if other["status"]["phase"] not in ("Succeeded", "Failed"):
            used.setdefault(other["spec"].get("nodeName", ""), []).append(other)
    reasons: Counter[str] = Counter()
    helpless = 0
    fitting: list[tuple[Decimal, str]] = []
    for node in nodes:
        name = node["metadata"]["name"]
        taken = used.get(name, [])
        why = _refuse(pod, node, taken)
        reasons.update(why)
        helpless += not why or not _freeable(pod, node, why)
        if not why:
            fitting.append((_share(node, taken), name))
    return (min(fitting)[1], "") if fitting else ("", _unschedulable(len(nodes), reasons, helpless))


def needs(pod: Obj) -> Amounts:
    """Amounts that a pod takes of its node: the greater of its containers' sum and of each init container."""
    spec = pod["spec"]
    total: Amounts = {}
    for container in spec["containers"]:
        for kind, value in _requests(container).items():
            total[kind] = total.get(kind, Decimal(0)) + value
    for container in spec.get("initContainers") or []:
        for kind, value in _requests(container).items():
            total[kind] = max(total.get(kind, Decimal(0)), value)
    return total


def tolerates(pod: Obj, taint: Mapping[str, Any]) -> bool:
    for toleration in pod["spec"].get("tolerations") or []:
        effect = toleration.get("effect") in (None, "", taint["effect"])
        key = toleration.get("key", "") in ("", taint["key"])
        exists = toleration.get("operator", "Equal") == "Exists"
        if effect and key and (exists or toleration.get("value", "") == taint.get("value", "")):
            return True
    return False


def _refuse(pod: Obj, node: Obj, taken: list[Obj]) -> list[str]:
    """Why this node will not do; as the real one, the first kind of reason is the only one named."""
    if node["spec"].get("unschedulable"):
        return ["node(s) were unschedulable"]
    for taint in node["spec"].get("taints") or []:
        if taint["effect"] != "PreferNoSchedule" and not tolerates(pod, taint):
            return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    labels = node["metadata"].get("labels") or {}
    if not _selected(pod, labels):
        return ["node(s) didn't match Pod's node affinity/selector"]
    room = {kind: amount(value) for kind, value in node["status"]["allocatable"].items()}
    if len(taken) + 1 > room.pop("pods", Decimal(110)):
        return ["Too many pods"]
    for other in taken:
        for kind, value in needs(other).items():
            room[kind] = room.get(kind, Decimal(0)) - value
    return [f"{_FULL}{kind}" for kind, value in needs(pod).items() if value > room.get(kind, Decimal(0))]


def _selected(pod: Obj, labels: Mapping[str, str]) -> bool:
    selector = pod["spec"].get("nodeSelector") or {}
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = (required or {}).get("nodeSelectorTerms") or []
    plain = all(labels.get(key) == value for key, value in selector.items())
    return plain and (not required or any(selectors.matches(term, labels) for term in terms))


def _share(node: Obj, taken: list[Obj]) -> Decimal:
    cpu = sum((needs(other).get("cpu", Decimal(0)) for other in taken), Decimal(0))
    return cpu / max(amount(node["status"]["allocatable"]["cpu"]), Decimal("0.001")) + len(taken)


def _requests(container: Mapping[str, Any]) -> Amounts:
    given = container.get("resources") or {}
    return {
        kind: amount(value)
        for kind, value in {**(given.get("limits") or {}), **(given.get("requests") or {})}.items()
    }


def _freeable(pod: Obj, node: Obj, why: list[str]) -> bool:
    """Whether the node would do if others left it."""
    room, wanted = node["status"]["allocatable"], needs(pod)
    return all(reason.startswith(_FULL) for reason in why) and all(
        wanted[reason.removeprefix(_FULL)] <= amount(room.get(reason.removeprefix(_FULL), 0))
        for reason in why
    )


def _unschedulable(count: int, reasons: Counter[str], helpless: int) -> str:
    listed = ", ".join(sorted(f"{number} {reason}" for reason, number in reasons.items()))
    head = f"0/{count} nodes are available: "
    victims = f"{count - helpless} No preemption victims found for incoming pod"
    hopeless = f"{helpless} Preemption is not helpful for scheduling"
    parts = sorted([victims] * (helpless < count) + [hopeless] * (helpless > 0))
    return f"{head}{listed}. no new claims to deallocate, preemption: {head}{', '.join(parts)}."


def _place(world: World, pod: Obj) -> None:
    storage, now = world.storage, stamp(world.clock())
    unready = _unready_claims(world, pod)
    nodes = [node for node in storage.all(NODES) if node["metadata"]["name"] not in world.silent]
    node, why = choose(pod, nodes, storage.all(PODS))
    if unready and nodes:
        node, why = "", f"0/{len(nodes)} nodes are available: {unready}. not found"

    def act(one: Obj) -> None:
        if node:
            one["spec"]["nodeName"] = node
            conditions.put(one, "PodScheduled", True, now)
        else:
            conditions.put(one, "PodScheduled", False, now, "Unschedulable", why)

    known = conditions.find(pod, "PodScheduled")
    storage.change(pod, act)
    where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if node:
        text = f"Successfully assigned {where} to {node}"
        events.record(world, pod, events.NORMAL, "Scheduled", text, BY)
    elif known is None or known.get("message") != why:
        events.record(world, pod, events.WARNING, "FailedScheduling", why, BY)


def _unready_claims(world: World, pod: Obj) -> str:
    """Why its volumes keep a pod off every node: a claim is absent, or has no storage class to bind it."""
    for volume in pod["spec"].get("volumes") or []:
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        claim = world.storage.find(CLAIMS, pod["metadata"]["namespace"], name) if name else None
        if name and claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim is not None and claims.is_unbound(claim):
            return "pod has unbound immediate PersistentVolumeClaims"
    return ""
