"""Manifest of a launch, as Kubernetes has it: a Job, and a Secret beside it. Pure.

The Job is Indexed: each index is replaced on its own until its worker has left because nothing is left for
it. Names carry the generation, since a Job cannot be changed. What nobody else may read is in the Secret.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hostler import env, settings
from hostler.backends import cloud
from hostler.backends.base import Launch
from hostler.backends.cloud import Owner
from hostler.backends.kubernetes import names, volumes
from hostler.backends.kubernetes.credentials import is_local
from hostler.backends.kubernetes.earlier_pods import API, CONTAINER
from hostler.backends.kubernetes.host import HOME, UNFIT, UNUSABLE
from hostler.backends.kubernetes.names import owner_of
from hostler.backends.kubernetes.shape import PodShape, shape
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.remote.standalone import standalone
from hostler.spec.names import slug
from hostler.spec.project import Fleet

UPLOADING = 30.0  # seconds after the grace in which what was saved reaches the store
BACK_OFF = 1000  # times that an index may fail by itself: the worker has its own limits
BRING, WORKER = "bring", CONTAINER  # containers
QUEUE = "kueue.x-k8s.io/queue-name"
AZURE = "azure.workload.identity/use"  # without it AKS gives a pod nothing of its service account's role
EMULATED = ("STORAGE_EMULATOR_HOST",)
_OPENS = re.compile(r"^(AWS|GOOGLE|AZURE)_.*(KEY|TOKEN|SECRET|CREDENTIALS|SAS|SERVICE_ACCOUNT|PROFILE)")
_API = "hostler-api"  # a volume of the first container alone
_SAFE: dict[str, Any] = {"allowPrivilegeEscalation": False}
_BARE = {**_SAFE, "capabilities": {"drop": ["ALL"]}}

Body = dict[str, Any]


@dataclass(frozen=True)
class Manifest:
    """The objects of one launch, in the order in which they are made."""

    owner: Owner
    name: str
    found: PodShape
    job: Body
    hidden: Mapping[str, str]  # what the Secret holds

    @property
    def secret(self) -> Body | None:
        if not self.hidden:
            return None
        head = {**self.job["metadata"], "labels": self.owned}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": head,
            "type": "Opaque",
            "stringData": dict(self.hidden),
        }

    @property
    def owned(self) -> Body:
        """The labels by which things of this launch are known."""
        labels: Body = self.job["spec"]["template"]["metadata"]["labels"]
        return {name: value for name, value in labels.items() if name.startswith(cloud.PREFIX)}


def manifest(fleet: Fleet, launch: Launch) -> Manifest:
    pod_shape, owner = (
        shape(fleet, launch),
        owner_of(fleet if fleet.store else replace(fleet, store=launch.store)),
    )
    _check_store(fleet, launch, pod_shape)
    generation = cloud.number_of(launch.generation)
    name = owner.name(generation)
    public, hidden = _variables(pod_shape, launch)
    labels = {**owner.labels, cloud.GENERATION: generation}
    identity = {AZURE: "true"} if pod_shape.account and launch.store.startswith("az://") else {}
    template = {
        "metadata": {"labels": {**labels, **identity}},
        "spec": _pod(fleet, launch, pod_shape, name, public),
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _head(fleet, launch, pod_shape, name, labels),
        "spec": {**_rules(fleet, launch), "template": template},
    }
    return Manifest(owner, name, pod_shape, job, hidden)


def deadline_of(fleet: Fleet, launch: Launch) -> float:
    return cloud.deadline_of(launch, float(fleet.options.get("deadline") or cloud.DAY))


def _head(fleet: Fleet, launch: Launch, found: PodShape, name: str, labels: Body) -> Body:
    queue = {QUEUE: found.queue} if found.queue else {}
    place = fleet.options.get("namespace")
    return {
        "name": name,
        **({"namespace": place} if place else {}),
        "labels": {**labels, **queue},
        "annotations": {names.URL: launch.store},
    }


def _rules(fleet: Fleet, launch: Launch) -> Body:
    """How the Job goes on and ends."""
    remaining = max(1, math.floor(deadline_of(fleet, launch) - launch.at))
    return {
        "completionMode": "Indexed",
        "completions": fleet.workers,
        "parallelism": fleet.workers,
        "backoffLimitPerIndex": BACK_OFF,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [UNUSABLE]}},
                {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [UNFIT]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
        "activeDeadlineSeconds": remaining,
        "ttlSecondsAfterFinished": math.ceil(settings.timing().finished),
    }


def _pod(fleet: Fleet, launch: Launch, found: PodShape, name: str, public: Mapping[str, str]) -> Body:
    shared: Body = {"image": found.image, **({"imagePullPolicy": found.pull} if found.pull else {})}
    mounts = [{"name": "hostler", "mountPath": HOME}, *(volume.mounted for volume in found.volumes)]
    shared |= {"env": _env(public, fleet, launch, found), "envFrom": _sources(found, name)}
    shared |= {"volumeMounts": mounts, "securityContext": _SAFE if found.user is None else _BARE}
    pulls = [{"name": secret} for secret in found.pull_secrets]
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": math.ceil(settings.timing().grace + UPLOADING),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": True,  # then another process is the first, which buries what runs leave
        **({"serviceAccountName": found.account} if found.account else {}),
        **({"imagePullSecrets": pulls} if pulls else {}),
        **({"securityContext": _as_user(found.user)} if found.user is not None else {}),
        **({"nodeSelector": dict(found.selector)} if found.selector else {}),
        **({"tolerations": list(found.tolerations)} if found.tolerations else {}),
        "initContainers": [
            {
                "name": BRING,
                **shared,
                "command": _bring(launch),
                "volumeMounts": [*mounts, {"name": _API, "mountPath": API, "readOnly": True}],
                "resources": found.resources(gpus=False),
            }
        ],
        "containers": [
            {
                "name": WORKER,
                **shared,
                "command": _worker(fleet, launch, found),
                "resources": found.resources(),
            }
        ],
        "volumes": [
            {"name": "hostler", "emptyDir": {}},
            _access(),
            *(volume.body for volume in found.volumes),
        ],
    }


def _access() -> Body:
    """A token that lasts an hour, by which the first container asks how earlier pods ended."""
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}], "optional": True}
    own = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources: list[Body] = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]
    sources += [{"configMap": authority}, {"downwardAPI": {"items": [own]}}]
    return {"name": _API, "projected": {"sources": sources}}


def _as_user(user: int) -> Body:
    """Security context for namespaces with the strictest rules."""
    whom = {"runAsUser": user, "runAsGroup": user, "fsGroup": user, "runAsNonRoot": user != 0}
    return {**whom, "seccompProfile": {"type": "RuntimeDefault"}}


def _bring(launch: Launch) -> list[str]:
    return ["python3", "-c", boot(), _plain(launch.store), HOME, *(f"{k}={sha}" for k, sha in launch.parcels)]


def _worker(fleet: Fleet, launch: Launch, found: PodShape) -> list[str]:
    """The worker's command line, the same program as everywhere."""
    words = ["python3", "-m", "hostler.worker", _plain(launch.store), "--host", "kubernetes", "--billed"]
    words += ["--checked", "--fleet", launch.generation or f"{slug(fleet.name)}/1"]
    words += ["--deadline", f"{deadline_of(fleet, launch):.1f}"]
    slots = fleet.slots if found.sized or fleet.slots else 1
    words += ["--slots", str(slots)] if slots else []
    words += ["--cpus", f"{found.cpus:g}"] if found.cpus else []
    return words + (["--runs", str(fleet.runs_per_worker)] if fleet.runs_per_worker else [])


def _plain(word: str) -> str:
    """A word in which Kubernetes replaces nothing."""
    return word.replace("$", "$$")


def _env(public: Mapping[str, str], fleet: Fleet, launch: Launch, found: PodShape) -> list[Body]:
    places = [f"{HOME}/{key.split('/')[0]}/{sha}" for key, sha in launch.parcels]
    told = {
        "PYTHONPATH": ":".join(places),
        "PYTHONUNBUFFERED": "1",
        env.CACHE: fleet.cache or launch.cache or f"{HOME}/cache",
        **({"HOME": HOME} if found.user is not None else {}),
        **public,
    }
    fields = {env.ADDRESS: "status.podIP", env.POD: "metadata.name"}
    own = ({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items())
    return [*({"name": name, "value": value} for name, value in told.items()), *own]


def _sources(found: PodShape, name: str) -> list[Body]:
    """A person's own Secret must be there; ours is made where there is anything to hide."""
    own = [{"secretRef": {"name": found.secret}}] if found.secret else []
    return [*own, {"secretRef": {"name": name, "optional": True}}]


def _variables(found: PodShape, launch: Launch) -> tuple[dict[str, str], dict[str, str]]:
    """Public variables, and secret ones. A pod with an identity or a Secret of its own needs no keys."""
    public = {*settings.names(), *EMULATED, env.PORTS}
    identified = bool(found.account or found.secret)
    hidden = {
        name: value
        for name, value in launch.variables.items()
        if name not in public and not is_local(name) and not (identified and _OPENS.match(name))
    }
    seen = {name: value for name, value in launch.variables.items() if name in public}
    return seen, {**hidden, **launch.secrets}


def _check_store(fleet: Fleet, launch: Launch, found: PodShape) -> None:
    """Every pod must reach it: a bucket does, a folder only where it is a volume at the very same path."""
    scheme = launch.store.partition("://")[0] if "://" in launch.store else ""
    if scheme in ("s3", "gs", "az"):
        return
    if not scheme and launch.store.startswith("/"):
        if volumes.holds(found.volumes, launch.store):
            return
        hint = f"mount it there: volumes: {{{launch.store}: my-claim}} or {{{launch.store}: {{host: PATH}}}}"
        raise UsageError(
            f"fleet {fleet.name}: the store's folder {launch.store} is not on a volume of its pods",
            hint=f"{hint}; or use a bucket (store: s3://bucket/runs)",
        )
    raise UsageError(
        f"fleet {fleet.name}: pods cannot use the store {launch.store}",
        hint="use a bucket (store: s3://bucket/runs), or a folder that is one of the fleet's `volumes`",
    )


def boot() -> str:
    return standalone("hostler.backends.kubernetes.boot")
