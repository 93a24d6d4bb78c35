"""The state of a pod, and the reason it waits, in plain words beside the cluster's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hostler.backends.kubernetes.manifest import WORKER
from hostler.frozen import dataclass

WAITS, STARTS, RUNS, LEAVES, GONE = "waits", "starts", "runs", "leaves", "gone"

Body = Mapping[str, Any]

DRIVER_GKE = (
    "kubectl apply -f https://raw.githubusercontent.com/GoogleCloudPlatform/container-engine-accelerators/"
    "master/nvidia-driver-installer/cos/daemonset-preloaded.yaml"
)
DRIVER = (
    "kubectl create -f https://raw.githubusercontent.com/NVIDIA/k8s-device-plugin/"
    "v0.17.1/deployments/static/nvidia-device-plugin.yml"
)

POLICY = "`user: 1000` in the fleet runs them as an ordinary user; hostPath volumes need another namespace"


@dataclass(frozen=True)
class PodReason:
    """`state`: what it does; `words` for people; `never`: waiting does not help."""

    state: str
    words: str
    hint: str = ""
    never: bool = False
    failing: bool = False  # it might still come right, if it is given a moment


_WAITING = {
    "ImagePullBackOff": ("its image cannot be pulled", "check `image`, and `pull_secret` if it is private"),
    "ErrImagePull": ("its image cannot be pulled", "check `image`, and `pull_secret` if it is private"),
    "ErrImageNeverPull": (
        "its image is not on the node, and `pull: Never` keeps it from being pulled",
        "`pull:`",
    ),
    "InvalidImageName": ("its image has no valid name", "check `image`"),
    "ImageInspectError": ("its image is damaged on the node", "try another tag of `image`"),
    "RegistryUnavailable": ("the registry of its image does not answer", "check `image`"),
    "SignatureValidationFailed": ("the signature of its image is not accepted", "check `image`"),
    "CreateContainerConfigError": (
        "a Secret, volume or account that it uses does not exist",
        "check `secret`, `volumes` and `service_account`",
    ),
    "CreateContainerError": ("it cannot be made", "kubectl describe pod shows more"),
    "RunContainerError": ("it cannot be started", "check that the image has python3"),
    "CrashLoopBackOff": ("it ends again and again", "hostler logs FLEET"),
}
_HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_PARTS = (
    (r"Insufficient cpu", "{n} with too few CPUs free"),
    (r"Insufficient memory", "{n} with too little memory free"),
    (r"Insufficient ephemeral-storage", "{n} with too little disk free"),
    (r"Insufficient (?P<what>[\w.-]*gpu[\w.-]*|\S+/\S+)", "{n} without a free {what}"),
    (r"Too many pods", "{n} with no room for more pods"),
    (r"didn't match Pod's node affinity/selector", "{n} that `node_selector` excludes"),
    (
        r"had untolerated taints?(?:\(s\))? ?\{?(?P<what>[^}]*)\}?",
        "{n} with a taint that `tolerations` lacks: {what}",
    ),
    (r"were unschedulable", "{n} closed to new pods"),
    (r"volume node affinity conflict", "{n} that cannot have its volume"),
)
_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
_UNBOUND = "unbound immediate PersistentVolumeClaims"
_UNBINDABLE = ("FailedBinding", "ProvisioningFailed", "ExternalProvisioning")
_GPU = re.compile(r"Insufficient (\S*gpu\S*)", re.IGNORECASE)


def of_pod(pod: Body) -> PodReason:
    status = pod.get("status") or {}
    phase = str(status.get("phase") or "Pending")
    if phase in ("Succeeded", "Failed"):
        return PodReason(GONE, _ended(status), *_unstartable(status))
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return PodReason(LEAVES, "leaves")
    if phase == "Pending" and (why := _unscheduled(status)):
        return why
    return _of_containers(status, phase)


def of_job(job: Body, events: Sequence[Body]) -> PodReason:
    """Why a Job lacks pods. `events`: newest last."""
    if (job.get("spec") or {}).get("suspend"):
        return PodReason(WAITS, "waits: held back until its queue admits it (suspended)")
    failed = [str(e.get("message") or "") for e in events if e.get("reason") == "FailedCreate"]
    if not failed:
        return PodReason(WAITS, "waits: its pods are not made yet")
    words = _not_made(failed[-1])
    return PodReason(WAITS, f"waits: {words[0]}", words[1], failing=True)


def failure(job: Body) -> str:
    """Why a Job has failed; '' if it has not."""
    for condition in conditions(job):
        if condition.get("type") in ("Failed", "FailureTarget") and condition.get("status") == "True":
            return f"{condition.get('reason') or 'failed'}: {condition.get('message') or ''}".rstrip(": ")
    return ""


def is_finished(job: Body) -> bool:
    kinds = {str(condition.get("type")) for condition in conditions(job) if condition.get("status") == "True"}
    return bool(kinds & {"Complete", "Failed"})


def conditions(thing: Body) -> Sequence[Body]:
    return (thing.get("status") or {}).get("conditions") or ()


def in_words(message: str) -> str:
    """The scheduler's message about nodes, each reason in words; all of it beside, to look up."""
    nodes = re.match(r"(\d+)/(\d+) nodes are available: (.*)", message, re.DOTALL)
    if claim := _CLAIM.search(message):
        return f"no claim named {claim[1]} for its volume ({message})"
    if "persistentvolumeclaim" in message.lower():
        return f"its volume is not ready ({message})"
    if not nodes:
        return message
    told = re.split(r"\.? (?:no new claims|preemption:)", nodes[3])[0]
    parts = [text for word in re.split(r"[,.] (?=\d+ )|\.$|\. ?$", told) if (text := _part(word))]
    return f"no node has room: {', '.join(parts)} ({message})" if parts else f"no node has room ({message})"


def claims(pod: Body) -> list[str]:
    """Names of the claims that its volumes are."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return [str(own["claimName"]) for volume in volumes if (own := volume.get("persistentVolumeClaim"))]


def is_unbound(words: str) -> bool:
    return _UNBOUND in words


def of_claim(events: Sequence[Body]) -> str:
    """Why a claim has no volume yet, in the cluster's words; '' if it does not say. `events`: newest last."""
    told = [str(event.get("message") or "") for event in events if event.get("reason") in _UNBINDABLE]
    return told[-1] if told else ""


def wants_gpu(message: str) -> str:
    """The GPU that a scheduler's message says is short, as the cluster names it."""
    match = _GPU.search(message)
    return match[1].rstrip(".,") if match else ""


def no_driver(resource: str, nodes: Sequence[Body] | None) -> str:
    """Advice where no node offers a GPU at all; '' where some do. `nodes`: None if they are not shown."""
    if nodes is None:
        return f"if no node offers {resource} at all: {DRIVER_GKE} (GKE), {DRIVER} (others)"
    offered = [str((node.get("status") or {}).get("allocatable", {}).get(resource, "0")) for node in nodes]
    if any(count not in ("", "0") for count in offered):
        return ""
    labels = [(node.get("metadata") or {}).get("labels") or {} for node in nodes]
    gke = any(
        "cloud.google.com/gke-accelerator" in label or "cloud.google.com/gke-nodepool" in label
        for label in labels
    )
    return f"no node offers {resource}: install the driver: {DRIVER_GKE if gke else DRIVER}"


def _part(text: str) -> str:
    count = re.match(r"(\d+) ", text.strip())
    number = count[1] if count else "some"
    for pattern, words in _PARTS:
        match = re.search(pattern, text)
        if match:
            return words.format(n=number, **match.groupdict())
    return ""


def _unscheduled(status: Body) -> PodReason | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            message = str(condition.get("message") or condition.get("reason") or "")
            absent = bool(_CLAIM.search(message))
            hint = "check `volumes`; kubectl get pvc shows the claims there are" if absent else ""
            return PodReason(WAITS, f"waits: {in_words(message)}", hint, failing=absent)
    return None


def _of_containers(status: Body, phase: str) -> PodReason:
    for container in _containers(status):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason") or "")
        if reason in _WAITING:
            text = str(waiting.get("message") or "")
            never = reason in _HOPELESS or "invalid reference format" in text
            words, hint = _WAITING["InvalidImageName" if never and reason == "ErrImagePull" else reason]
            detail = f"{reason}: {text}" if text else reason
            return PodReason(WAITS, f"waits: {words} ({detail})", hint, never, failing=True)
    own: Body = next(
        (
            container_status
            for container_status in status.get("containerStatuses") or ()
            if container_status.get("name") == WORKER
        ),
        {},
    )
    if (own.get("state") or {}).get("running") is not None and phase == "Running":
        return PodReason(RUNS, "runs")
    return PodReason(STARTS, "is being started")


def _ended(status: Body) -> str:
    if status.get("phase") == "Succeeded":
        return "ended: no run was left for it"
    if status.get("reason"):
        return f"ended: {status['reason']}: {status.get('message') or ''}".rstrip(": ")
    for container in _containers(status):
        over = (container.get("state") or {}).get("terminated") or {}
        if over.get("exitCode"):
            text = str(over.get("message") or "").strip()
            why = str(over.get("reason") or "")
            told = f" ({why}{f': {text}' if text else ''})" if why and why != "Error" else ""
            return f"ended with {over['exitCode']}{told}"
    return "ended"


def _unstartable(status: Body) -> tuple[str, bool]:
    """(what to do, whether others would fare the same) of a pod whose program is not in its image."""
    over = [(container.get("state") or {}).get("terminated") or {} for container in _containers(status)]
    never = any(one.get("reason") in ("StartError", "ContainerCannotRun") for one in over)
    return "check that `image` has python3" if never else "", never


def _containers(status: Body) -> Iterator[Body]:
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _not_made(message: str) -> tuple[str, str]:
    quota = re.search(r"exceeded quota: (.+)", message)
    if quota:
        return (
            f"the namespace's quota is used up: {quota[1]}",
            "lower `workers` or `resources`, or raise the quota",
        )
    account = re.search(r'serviceaccount "([^"]+)" not found', message)
    if account:
        return f"no service account named {account[1]}", "check `service_account`"
    if "violates PodSecurity" in message:
        return f"its namespace does not allow such pods: {message}", POLICY
    return f"its pods cannot be made: {message}", "kubectl describe job shows more"
