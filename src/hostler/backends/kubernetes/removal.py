"""Taking a fleet's things in a cluster away, and what is left standing afterwards.

A Job is deleted in the foreground: it is listed until its pods are gone. What is gone already is as good as
removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hostler.backends.base import Thing
from hostler.backends.kubernetes import names
from hostler.backends.kubernetes.client import Client, Refused
from hostler.backends.kubernetes.names import Owner, labels_of, name_of
from hostler.backends.kubernetes.reasons import is_finished

JOB, POD, SECRET = "Job", "Pod", "Secret"
KINDS = (JOB, POD, SECRET)
_OVER = frozenset({"Succeeded", "Failed"})

Body = Mapping[str, Any]


def things(client: Client, owner: Owner | None = None) -> list[Thing]:
    """All that hostler made in the namespace and is there now; of one fleet, if one is named."""
    wanted = owner.labels if owner else {names.PROJECT: "*"}
    return [_thing(client, kind, one) for kind in KINDS for one in client.list(kind, wanted)]


def needless(found: Iterable[Thing]) -> list[Thing]:
    """Without what the cluster itself removes soon: a finished Job and what belongs to it."""
    known = list(found)
    working = {one.generation + one.fleet for one in known if one.kind == JOB and one.works}
    finished = {one.generation + one.fleet for one in known if one.kind == JOB and not one.works}
    return [one for one in known if one.generation + one.fleet not in finished - working]


def remove(client: Client, found: Iterable[Thing], *, now: bool = False) -> None:
    """Jobs first: they would make their pods anew."""
    known = list(found)
    for kind in KINDS:
        for one in known:
            if one.kind == kind:
                client.delete(kind, one.name, now=now and kind == POD)


def nodes_of(pods: Iterable[Body]) -> list[str]:
    return list(
        dict.fromkeys(filter(None, (str((pod.get("spec") or {}).get("nodeName") or "") for pod in pods)))
    )


def standing(client: Client, nodes: Sequence[str]) -> list[str]:
    """Of nodes that a fleet was on, what to say of those that nobody uses now."""
    if not nodes:
        return []
    try:
        there = {name_of(one) for one in client.list("Node")}
        busy = {node for pod in client.everywhere(POD) if _counts(pod) for node in nodes_of([pod])}
    except Refused:
        listed = ", ".join(nodes)
        return [f"its pods were on {listed}; whether these stand empty now, your rights do not show"]
    empty = [node for node in nodes if node in there and node not in busy]
    if not empty:
        return []
    hint = "they may cost until the cluster, or you, make their pool smaller"
    return [f"standing empty now: {', '.join(empty)}; {hint}"]


def _counts(pod: Body) -> bool:
    """Whether a pod is somebody's work: those that are on every node are not."""
    owners = [str(one.get("kind")) for one in (pod.get("metadata") or {}).get("ownerReferences") or ()]
    return str((pod.get("status") or {}).get("phase")) not in _OVER and not {"DaemonSet", "Node"} & set(
        owners
    )


def _thing(client: Client, kind: str, body: Body) -> Thing:
    labels = labels_of(body)
    whose = (labels.get(names.PROJECT, ""), labels.get(names.FLEET, ""), labels.get(names.GENERATION, ""))
    works = (kind == JOB and not is_finished(body)) or (
        kind == POD and str((body.get("status") or {}).get("phase")) not in _OVER
    )
    status = str((body.get("status") or {}).get("phase") or "")
    path = f"{kind}/{name_of(body)}"
    return Thing(kind, name_of(body), path, *whose, status=status, where=client.namespace, works=works)
