"""The pods of a Job: how they are named and marked, and what each counts for. Pure."""

from __future__ import annotations

import copy
from typing import Any

from hostler.emulators.k8s.node.podstatus import FINISHED
from hostler.emulators.k8s.storage import Obj

TRACKED = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


def make(job: Obj, index: int, suffix: str, failures: int, ignored: int) -> Obj:
    """A pod for an index; for none in particular if it is negative."""
    meta, template = job["metadata"], copy.deepcopy(job["spec"]["template"])
    own: dict[str, Any] = template.get("metadata") or {}
    stem = f"{meta['name']}-{index}" if index >= 0 else meta["name"]
    labels, notes = dict(own.get("labels") or {}), dict(own.get("annotations") or {})
    if index >= 0:
        labels[INDEX] = notes[INDEX] = str(index)
        template["spec"].setdefault("hostname", stem)
        _tell(template["spec"])
    if job["spec"].get("backoffLimitPerIndex") is not None:
        notes |= {FAILURES: str(failures)} | ({IGNORED: str(ignored)} if ignored else {})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{stem}-{suffix}",
            "generateName": f"{stem}-",
            "namespace": meta["namespace"],
            "labels": labels,
            **({"annotations": notes} if notes else {}),
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
            "finalizers": [TRACKED],
        },
        "spec": template["spec"],
    }


def _tell(spec: dict[str, Any]) -> None:
    """JOB_COMPLETION_INDEX, in every container."""
    path = f"metadata.labels['{INDEX}']"
    entry = {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}},
    }
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        known = container.get("env") or []
        if not any(one["name"] == entry["name"] for one in known):
            container["env"] = [*known, copy.deepcopy(entry)]


def owned(job: Obj, pods: list[Obj]) -> list[Obj]:
    uid = job["metadata"]["uid"]
    return [
        pod
        for pod in pods
        if any(
            reference["uid"] == uid and reference.get("controller")
            for reference in pod["metadata"].get("ownerReferences", [])
        )
    ]


def index_of(pod: Obj) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(INDEX, -1))


def tracked(pod: Obj) -> bool:
    """Not counted yet."""
    return TRACKED in pod["metadata"].get("finalizers", [])


def going(pod: Obj) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def over(pod: Obj) -> bool:
    return pod["status"]["phase"] in FINISHED


def active(pod: Obj) -> bool:
    return not over(pod) and not going(pod)


def restarts(pods: list[Obj]) -> int:
    """Number of container restarts in pods that still run."""
    known = [
        status for pod in pods if not over(pod) for status in pod["status"].get("containerStatuses") or []
    ]
    return sum(one["restartCount"] for one in known)


def to_count(job: Obj, pod: Obj) -> bool:
    """Whether the pod's end is to be counted now: a terminating one at once, unless only failed ones are
    replaced."""
    early = job["spec"]["podReplacementPolicy"] == "TerminatingOrFailed"
    return tracked(pod) and (over(pod) or (going(pod) and early))
