"""Removal of a fleet's things in a cluster, and the nodes left empty afterwards.

A Job is deleted in the foreground: it is listed until its pods are gone. What is gone already is as good as
removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hostler.backends import cloud
from hostler.backends.base import Thing
from hostler.backends.cloud import Owner
from hostler.backends.kubernetes.client import KubeClient, KubeRefusal
from hostler.backends.kubernetes.names import labels_of, name_of
from hostler.backends.kubernetes.reasons import is_finished

JOB, POD, SECRET = "Job", "Pod", "Secret"
KINDS = (JOB, POD)
_OVER = frozenset({"Succeeded", "Failed"})

Body = Mapping[str, Any]


def things(client: KubeClient, owner: Owner, *, everywhere: bool = False) -> list[Thing]:
    """All that is there of a fleet; `everywhere`: of every fleet of its project, other stores' too, which are
    not `ours`."""
    labels = owner.labels
    wanted = {cloud.PROJECT: labels[cloud.PROJECT]} if everywhere else labels
    found = [_thing(client, kind, record) for kind in KINDS for record in client.list(kind, wanted)]
    return owner.things(found, everywhere=everywhere)


def needless(found: Iterable[Thing]) -> list[Thing]:
    """Without what the cluster itself removes soon: a finished Job and what belongs to it."""
    known = list(found)
    finished = {_launch(one) for one in known if one.kind == JOB and not one.works}
    return [one for one in known if _launch(one) not in finished]


def _launch(one: Thing) -> tuple[str, str, str]:
    return one.fleet, one.store, one.generation


def remove(client: KubeClient, found: Iterable[Thing], *, now: bool = False) -> None:
    """Jobs first: they would make their pods anew. Pods go with their Job, in their own time unless `now`; a
    Secret has its Job's name, and would go with it a little later."""
    known = list(found)
    jobs = {_launch(one) for one in known if one.kind == JOB}
    for kind in KINDS:
        for one in known:
            follows = one.kind == POD and _launch(one) in jobs and not (now and one.works)
            if one.kind == kind and not follows:
                client.delete(kind, one.name, now=now and kind == POD)
                if kind == JOB:
                    client.delete(SECRET, one.name)


def nodes_of(pods: Iterable[Body]) -> list[str]:
    return list(
        dict.fromkeys(filter(None, (str((pod.get("spec") or {}).get("nodeName") or "") for pod in pods)))
    )


def standing(client: KubeClient, nodes: Sequence[str]) -> list[str]:
    """Lines about nodes that a fleet was on and that nobody uses now."""
    if not nodes:
        return []
    try:
        there = {name_of(record) for record in client.list("Node")}
        busy = {node for pod in client.everywhere(POD) if _counts(pod) for node in nodes_of([pod])}
    except KubeRefusal:
        listed = ", ".join(nodes)
        return [f"its pods were on {listed}; your rights do not show whether these nodes are empty now"]
    empty = [node for node in nodes if node in there and node not in busy]
    if not empty:
        return []
    hint = "they may cost money until the cluster, or you, shrink their pool"
    return [f"nodes that are empty now: {', '.join(empty)}; {hint}"]


def _counts(pod: Body) -> bool:
    """Whether a pod is somebody's work: those that are on every node are not."""
    owners = [
        str(reference.get("kind")) for reference in (pod.get("metadata") or {}).get("ownerReferences") or ()
    ]
    return str((pod.get("status") or {}).get("phase")) not in _OVER and not {"DaemonSet", "Node"} & set(
        owners
    )


def _thing(client: KubeClient, kind: str, body: Body) -> Thing:
    phase = str((body.get("status") or {}).get("phase") or "")
    works = not is_finished(body) if kind == JOB else kind == POD and phase not in _OVER
    name = name_of(body)
    return Thing(kind, name, f"{kind}/{name}", *_whose(body), phase, client.namespace, works)


def _whose(body: Body) -> tuple[str, str, str, str]:
    """Project, fleet, store and generation."""
    labels = labels_of(body)
    project, fleet, store = (labels.get(key, "") for key in (cloud.PROJECT, cloud.FLEET, cloud.STORE))
    return project, fleet, store, labels.get(cloud.GENERATION, "")
