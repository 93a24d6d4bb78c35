"""Fills in an API server's defaults where a manifest is silent. In place.

`fill` may be done again to an object that has it all; `begin` is done once.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from hostler.emulators.k8s.storage import Obj

_CONTROLLER, _JOB = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
UNLIMITED = 2147483647


def fill(thing: Obj) -> None:
    """`thing` has its uid already."""
    act = {"Job": _job, "Pod": _pod, "Namespace": _namespace, "Secret": _secret, "Service": _service}
    act |= {"PersistentVolumeClaim": _claim, "RoleBinding": _binding}
    if thing["kind"] in act:
        act[thing["kind"]](thing)


def begin(thing: Obj) -> None:
    """The status of a new object."""
    kind, spec = thing["kind"], thing.get("spec") or {}
    first: dict[str, Any] = {
        "Pod": {"phase": "Pending", "qosClass": _quality(spec)},
        "Namespace": {"phase": "Active"},
        "Service": {"loadBalancer": {}},
        "PersistentVolumeClaim": {"phase": "Bound", "accessModes": spec.get("accessModes") or []},
        "Job": {},
    }
    if kind in first:
        thing["status"] = first[kind]
    if kind in ("Job", "Pod"):
        thing["metadata"]["generation"] = 1


def pod_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        _container(container)
    for volume in spec.get("volumes") or []:
        _volume(volume)


def _container(container: dict[str, Any]) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    latest = container.get("image", "").rpartition("/")[2].partition(":")[2] in ("", "latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = container.setdefault("resources", {})
    for kind, value in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(kind, value)
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for entry in container.get("env") or []:
        source = (entry.get("valueFrom") or {}).get("fieldRef")
        if source:
            source.setdefault("apiVersion", "v1")


def _volume(volume: dict[str, Any]) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for word in ("secret", "configMap", "projected"):
        if isinstance(volume.get(word), dict):
            volume[word].setdefault("defaultMode", 420)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")


def _pod(pod: Obj) -> None:
    spec = pod["spec"]
    pod_spec(spec)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    known = [toleration.get("key") for toleration in spec.get("tolerations") or []]
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in _NOT_READY
        if key not in known
    ]
    spec["tolerations"] = [*(spec.get("tolerations") or []), *added]


def _quality(spec: Mapping[str, Any]) -> str:
    given = [container.get("resources") or {} for container in spec.get("containers") or []]
    if not any(one.get("requests") or one.get("limits") for one in given):
        return "BestEffort"
    bounded = all(
        (one.get("limits") or {}).keys() >= {"cpu", "memory"} and one["limits"] == one.get("requests")
        for one in given
    )
    return "Guaranteed" if bounded else "Burstable"


def _job(job: Obj) -> None:
    spec, meta = job["spec"], job["metadata"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    spec["parallelism"] = 1 if spec.get("parallelism") is None else spec["parallelism"]
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec.setdefault("backoffLimit", UNLIMITED if per_index else 6)
    ruled = bool(spec.get("podFailurePolicy"))
    spec.setdefault("podReplacementPolicy", "Failed" if ruled else "TerminatingOrFailed")
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or []:
        for pattern in rule.get("onPodConditions") or []:
            pattern.setdefault("status", "True")
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    if not spec["manualSelector"]:
        labels |= {_CONTROLLER: meta["uid"], _JOB: meta["name"]}
        labels |= {"controller-uid": meta["uid"], "job-name": meta["name"]}
        spec["selector"] = {"matchLabels": {_CONTROLLER: meta["uid"]}}
    if isinstance(template.get("spec"), dict):
        pod_spec(template["spec"])


def _namespace(one: Obj) -> None:
    one["spec"] = {"finalizers": ["kubernetes"]}
    one["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = one["metadata"]["name"]


def _secret(one: Obj) -> None:
    one.setdefault("type", "Opaque")
    for key, value in (one.pop("stringData", None) or {}).items():
        one.setdefault("data", {})[key] = base64.b64encode(str(value).encode()).decode()


def _service(one: Obj) -> None:
    spec = one.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("clusterIP", "None" if spec.get("clusterIP") == "None" else "10.96.0.10")
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _claim(one: Obj) -> None:
    one["spec"].setdefault("volumeMode", "Filesystem")


def _binding(one: Obj) -> None:
    for subject in one.get("subjects") or []:
        if subject.get("kind") == "ServiceAccount":
            subject.setdefault("namespace", one["metadata"].get("namespace", ""))
