"""Objects as tables, for clients that print them (kubectl get): a few columns, made by the server."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hostler.emulators.k8s import moment
from hostler.emulators.k8s.api.message import Answer, Call, as_json
from hostler.emulators.k8s.controllers import conditions
from hostler.emulators.k8s.storage import Obj

Columns = Mapping[str, Callable[[Obj], object]]


def shown(call: Call, thing: Obj) -> Answer:
    return as_json(wanted(call)(thing))


def wanted(call: Call) -> Callable[[Obj], Obj]:
    """The form in which this client wants objects."""
    first = call.headers.get("accept", "").partition(",")[0]
    if "as=Table" not in first.replace(" ", ""):
        return lambda thing: thing
    return lambda thing: _table(thing, call.query.get("includeObject", "Metadata"))


def _table(thing: Obj, included: str) -> Obj:
    things: Sequence[Obj] = thing.get("items", [thing])
    kind = things[0]["kind"] if things else ""
    columns = {"Name": lambda one: one["metadata"]["name"], **_COLUMNS.get(kind, {}), "Age": _age}
    heads = [_head(name) for name in columns]
    rows = [
        {"cells": [show(one) for show in columns.values()], "object": _included(one, included)}
        for one in things
    ]
    meta = (
        thing["metadata"] if "items" in thing else {"resourceVersion": thing["metadata"]["resourceVersion"]}
    )
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": heads,
        "rows": rows,
    }


def _head(name: str) -> dict[str, Any]:
    wide = 1 if name in _WIDE else 0
    found = {"name": name, "type": "string", "format": "", "description": name, "priority": wide}
    return found | ({"format": "name"} if name == "Name" else {})


def _included(thing: Obj, included: str) -> Obj | None:
    if included == "None":
        return None
    if included == "Object":
        return thing
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": thing["metadata"]}


def _age(thing: Obj) -> str:
    passed = max(int(time.time() - moment.seconds(thing["metadata"]["creationTimestamp"])), 0)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if passed >= 2 * size:
            return f"{passed // size}{unit}"
    return f"{passed}s"


def _pod_state(pod: Obj) -> str:
    status = pod["status"]
    reason = str(status.get("reason") or status["phase"])
    for one in status.get("containerStatuses") or []:
        state = one["state"].get("waiting") or one["state"].get("terminated") or {}
        reason = state.get("reason") or reason
    for one in status.get("initContainerStatuses") or []:
        state = one["state"].get("waiting") or one["state"].get("terminated") or {}
        if state.get("exitCode") != 0 and state.get("reason") not in (None, "PodInitializing"):
            return f"Init:{state['reason']}"
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else reason


def _pod_ready(pod: Obj) -> str:
    known = pod["status"].get("containerStatuses") or []
    return f"{sum(one['ready'] for one in known)}/{len(pod['spec']['containers'])}"


def _job_state(job: Obj) -> str:
    words = ("Failed", "Complete", "FailureTarget", "SuccessCriteriaMet", "Suspended")
    true = [
        condition["type"]
        for condition in job["status"].get("conditions") or []
        if condition["status"] == "True"
    ]
    return next((word for word in words if word in true), "Running")


def _node_state(node: Obj) -> str:
    ready = "Ready" if conditions.holds(node, "Ready") else "NotReady"
    return ready + (",SchedulingDisabled" if node["spec"].get("unschedulable") else "")


_WIDE = ("IP", "Node")  # columns of `-o wide`
_COLUMNS: Mapping[str, Columns] = {
    "Pod": {
        "Ready": _pod_ready,
        "Status": _pod_state,
        "Restarts": lambda pod: sum(
            one["restartCount"] for one in pod["status"].get("containerStatuses") or []
        ),
        "IP": lambda pod: pod["status"].get("podIP", "<none>"),
        "Node": lambda pod: pod["spec"].get("nodeName", "<none>"),
    },
    "Job": {
        "Status": _job_state,
        "Completions": lambda job: f"{job['status'].get('succeeded', 0)}/{job['spec'].get('completions', 1)}",
    },
    "Node": {"Status": _node_state},
    "Namespace": {"Status": lambda one: one["status"]["phase"]},
    "Event": {
        "Type": lambda one: one["type"],
        "Reason": lambda one: one["reason"],
        "Object": lambda one: f"{one['involvedObject']['kind'].lower()}/{one['involvedObject']['name']}",
        "Message": lambda one: one["message"],
    },
}
