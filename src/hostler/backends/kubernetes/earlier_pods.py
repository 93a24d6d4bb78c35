"""Ends of earlier pods of an index, by their status: asked by a pod's first container, read by its worker.

That container alone has a token of the cluster, and no code of a run is in it. Where the pods' account may
not list pods, nobody tells, and their runs count as lost. Standard library alone: it travels with `boot.py`.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from hostler.env import POD

API = "/var/run/hostler"  # the first container's token, the cluster's certificate and the namespace
NOTE = "earlier_pods.json"
CONTAINER = "worker"
_DISK = re.compile(r"(?:storage|EmptyDir).* exceed|exceed.* storage")
TELLING = 3.0  # seconds that the cluster has for its answer: no start waits longer for it


def note_ends(folder: str, place: str = API) -> None:
    """Leave a file that says how earlier pods of this one's index ended, if the cluster tells."""
    try:
        ends = ends_of(_listed(Path(place)))
    except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError):
        return
    Path(folder, NOTE).write_text(json.dumps(ends))


def ends_of(pods: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """How each pod ended, by its name, of those whose status says it. Pure."""
    found = dict[str, str]()
    for pod in pods:
        status = pod.get("status") or {}
        own = [
            container_status
            for container_status in status.get("containerStatuses") or ()
            if container_status.get("name") == CONTAINER
        ]
        over = [(one.get("state") or {}).get("terminated") or {} for one in own]
        if any(one.get("reason") == "OOMKilled" for one in over):
            found[pod["metadata"]["name"]] = "memory"
        elif any(condition.get("type") == "DisruptionTarget" for condition in status.get("conditions") or ()):
            found[pod["metadata"]["name"]] = "preempted"
        elif status.get("reason") == "Evicted":  # by a limit of its own: its node would mark it as disrupted
            text = str(status.get("message") or "").strip()
            found[pod["metadata"]["name"]] = f"disk-full: {text}" if _DISK.search(text) else "evicted"
    return found


def end_of(pod: str, folder: str) -> str:
    """How an earlier pod ended, as the first container of this one was told; '' if it was not."""
    try:
        return str(json.loads(Path(folder, NOTE).read_text()).get(pod, ""))
    except (OSError, ValueError):
        return ""


def _listed(place: Path) -> Iterable[Mapping[str, Any]]:
    """Pods of this one's Job and index. A pod is called as its Job is, with its index and five letters."""
    job, index, _ = os.environ[POD].rsplit("-", 2)
    host, port = (os.environ[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT"))
    labels = {"batch.kubernetes.io/job-name": job, "batch.kubernetes.io/job-completion-index": index}
    chosen = urlencode({"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())})
    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    namespace, token = ((place / name).read_text().strip() for name in ("namespace", "token"))
    url = f"https://{server}/api/v1/namespaces/{namespace}/pods?{chosen}"
    trusted = ssl.create_default_context(cafile=str(place / "ca.crt"))
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=trusted))
    with opener.open(Request(url, headers={"Authorization": f"Bearer {token}"}), timeout=TELLING) as answer:
        pods: Iterable[Mapping[str, Any]] = json.loads(answer.read())["items"]
    return pods
