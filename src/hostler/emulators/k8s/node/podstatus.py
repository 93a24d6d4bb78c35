"""The containers' part of a pod's status: pure over the pod and the runs that the kubelet has of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hostler.emulators.k8s.controllers import conditions
from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.node.container import Container
from hostler.emulators.k8s.node.sandbox import Sandbox, Waiting
from hostler.emulators.k8s.storage import Obj

FINISHED = ("Succeeded", "Failed")


def describe(pod: Obj, sandbox: Sandbox, host: str, now: float, phase: str = "") -> Obj:
    """The pod with its status as of now; `phase` if it is over."""
    fresh = copy.deepcopy(pod)
    spec, status, at = fresh["spec"], fresh["status"], stamp(now)
    status |= {"hostIP": host, "hostIPs": [{"ip": host}]}
    status |= {"podIP": sandbox.address, "podIPs": [{"ip": sandbox.address}]}
    status.setdefault("startTime", at)
    first = spec.get("initContainers") or []
    prepared = all(_prepared(one, sandbox.last(one["name"])) for one in first)
    if first:
        status["initContainerStatuses"] = [_status(one, sandbox, "PodInitializing", True) for one in first]
    word = "ContainerCreating" if prepared and not first else "PodInitializing"
    status["containerStatuses"] = [
        _status(container, sandbox, word, False) for container in spec["containers"]
    ]
    status["phase"] = phase or _phase(status, prepared)
    _conclude(fresh, sandbox, prepared, at)
    return fresh


def _conclude(pod: Obj, sandbox: Sandbox, prepared: bool, at: str) -> None:
    status = pod["status"]
    over = status["phase"] in FINISHED
    ready = (
        not over
        and prepared
        and all(container_status["ready"] for container_status in status["containerStatuses"])
    )
    if sandbox.verdict and over:
        status["reason"], status["message"] = sandbox.verdict.reason, sandbox.verdict.message
    names = [
        container_status["name"]
        for container_status in status["containerStatuses"]
        if not container_status["ready"]
    ]
    listed = f"[{' '.join(names)}]"
    reason, message = "ContainersNotReady", f"containers with unready status: {listed}"
    if over:
        reason, message = ("PodCompleted", "") if status["phase"] == "Succeeded" else ("PodFailed", "")
    why = ("", "") if ready else (reason, message)
    undone = ("", "") if prepared else ("ContainersNotInitialized", "containers with incomplete status")
    conditions.put(pod, "PodReadyToStartContainers", not over, at)
    conditions.put(pod, "Initialized", prepared, at, *undone)
    conditions.put(pod, "Ready", ready, at, *why)
    conditions.put(pod, "ContainersReady", ready, at, *why)


def _phase(status: Mapping[str, Any], prepared: bool) -> str:
    started = [
        container_status
        for container_status in status["containerStatuses"]
        if "waiting" not in container_status["state"] or container_status["restartCount"]
    ]
    return "Running" if prepared and len(started) == len(status["containerStatuses"]) else "Pending"


def _prepared(container: Mapping[str, Any], run: Container | None) -> bool:
    if run is None:
        return False
    if container.get("restartPolicy") == "Always":
        return True
    return not run.running and run.code == 0 and not run.error


def _status(container: Mapping[str, Any], sandbox: Sandbox, word: str, first: bool) -> dict[str, Any]:
    name, runs = container["name"], sandbox.runs.get(container["name"], [])
    run = runs[-1] if runs else None
    waiting = sandbox.waiting.get(name)
    begun = run is not None and (run.pid or not run.running)
    state = _state(run) if run is not None and begun and not waiting else _waiting(waiting or Waiting(word))
    before = runs[-1] if waiting and runs else runs[-2] if len(runs) > 1 else None
    running = "running" in state
    image = container["image"]
    return {
        "name": name,
        "image": image,
        "imageID": f"stand-in://{image}" if run else "",
        **({"containerID": f"stand-in://{run.launcher}"} if run else {}),
        "ready": running or (first and "terminated" in state and state["terminated"]["exitCode"] == 0),
        "started": running,
        "restartCount": max(len(runs) - 1, 0),
        "state": state,
        "lastState": _state(before) if before and not before.running else {},
    }


def _waiting(why: Waiting) -> dict[str, Any]:
    return {"waiting": {"reason": why.reason} | ({"message": why.message} if why.message else {})}


def _state(run: Container) -> dict[str, Any]:
    if run.ended is None:
        return {"running": {"startedAt": stamp(run.began)}}
    found = {
        "exitCode": run.code,
        "reason": run.reason,
        "startedAt": stamp(run.began),
        "finishedAt": stamp(run.ended),
        "containerID": f"stand-in://{run.launcher}",
    }
    return {"terminated": found | ({"message": run.message} if run.message else {})}
