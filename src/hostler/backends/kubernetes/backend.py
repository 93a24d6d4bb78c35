"""Workers as pods of one Indexed Job: the cluster brings back what it loses, and the Job ends by itself.

Nothing is remembered here: what is a fleet's is written on it (labels). Every step of a launch may be done
twice: a Job of the same name and store is as good as made. `stop` removes everything.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hostler import env, settings
from hostler.backends import cloud
from hostler.backends.base import (
    Address,
    Capabilities,
    Launch,
    MachineInfo,
    Plan,
    Question,
    Thing,
    WorkerInfo,
)
from hostler.backends.cloud import Owner
from hostler.backends.kubernetes import (
    config,
    manifest,
    rbac,
    reasons,
    refusals,
    removal,
    text,
    volumes,
    watching,
)
from hostler.backends.kubernetes import shape as shapes
from hostler.backends.kubernetes.client import KubeClient, KubeRefusal, connect
from hostler.backends.kubernetes.credentials import portable
from hostler.backends.kubernetes.manifest import BRING, UPLOADING, WORKER, Manifest
from hostler.backends.kubernetes.names import labels_of, name_of, owner_of, store_of
from hostler.errors import CloudError, CloudUnavailable, MachineError, MissingError, UsageError
from hostler.spec.project import Fleet
from hostler.spec.units import show_duration

CAPABILITIES = Capabilities(
    restarts=True,
    billed=True,
    makes_machines=True,
    tells=True,
    by_ssh=False,
    lasts=cloud.DAY,
)
LOOK = 0.3

Body = dict[str, Any]


@dataclass
class KubernetesBackend:
    connect: Callable[[Fleet], KubeClient] = connect
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = lambda line: None
    capabilities: Capabilities = field(default=CAPABILITIES)
    _client: KubeClient | None = None  # by which it was asked last
    _known: dict[tuple[str, str], KubeClient] = field(default_factory=dict)  # by context and namespace
    _nodes: dict[str, None] = field(default_factory=dict)  # those that what it removed was on

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        made = manifest.manifest(fleet, launch)
        left = show_duration(made.job["spec"]["activeDeadlineSeconds"])
        notes = (f"store {launch.store}", f"ended by the cluster itself after {left}")
        return Plan(
            fleet,
            (),
            notes,
            variables=launch.variables,
            script=text.of_launch(made).rstrip("\n"),
            workers=fleet.workers,
            launch=launch,
        )

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        client = self._connect(plan.fleet)
        launch = plan.launch or Launch("")
        made = manifest.manifest(plan.fleet, launch)
        self._make(client, made, launch)
        self.say(f"{made.name} is made; waiting for its workers (Ctrl-C: they come by themselves)")
        need = min(plan.fleet.workers, launch.resources.fewest)
        try:
            watching.JobWatch(client, made, need, self.pause, self.clock, self.say).until_ready()
            worker_infos = [
                worker
                for worker in self._workers(client, plan.fleet)
                if worker.alive and worker.launch == made.name
            ]
        except (CloudUnavailable, KubeRefusal) as error:  # whole, and without a watcher it goes on
            self.say(f"{made.name} goes on, and cannot be watched: {error}")
            return [WorkerInfo(made.name, "", True, "not watched", plan.workers, launch=made.name)]
        return [
            worker_info for worker_info in worker_infos if worker_info.host
        ] or worker_infos  # pods; a Job stands for those that wait alone

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        return self._workers(self._connect(fleet), fleet)

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        """Delete all of it, and wait until the pods are gone: they are told first, and save what runs."""
        client, owner = self._connect(fleet), owner_of(fleet)
        worker_infos = self._workers(client, fleet)
        self._nodes.update(dict.fromkeys(removal.nodes_of(client.list(removal.POD, owner.labels))))
        self._remove(client, owner, removal.things(client, owner), now=now)
        return worker_infos

    def logs(self, worker: WorkerInfo) -> bytes:
        """Output of its two containers, asked as it was listed; it goes with the pod."""
        if self._client is None or not worker.log:
            return b""
        found = [self._client.log(worker.log, container) for container in (BRING, WORKER)]
        return "".join(found).encode()

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        """The pods are not there yet; what they will be like, or why there can be none."""
        try:
            client = self._connect(fleet)
            _check_place(client)
            lacks = [one for one in rbac.needs() if not client.may(*one)]
        except (CloudError, MachineError, UsageError) as error:
            return [MachineInfo(fleet.name, error.message, error.hint)]
        if lacks:
            verb, _, resource = lacks[0]
            return [MachineInfo(fleet.name, *refusals.missing(verb, resource, client.namespace))]
        sees = bool(question.path) and volumes.holds(volumes.volumes(fleet), question.path)
        return [replace(self.likely(fleet), sees=sees)]

    def likely(self, fleet: Fleet) -> MachineInfo:
        shape = shapes.shape(fleet, Launch(""))
        python, platform = shapes.python_of(shape.image, shape.selector)
        return MachineInfo(fleet.name, python=python, platform=platform)

    def completed(self, fleet: Fleet) -> Fleet:
        return fleet

    def remains(self, fleet: Fleet, *, everywhere: bool = False) -> Sequence[Thing]:
        found = removal.things(self._connect(fleet), owner_of(fleet), everywhere=everywhere)
        return removal.needless(found) if everywhere else found

    def remove(self, fleet: Fleet, found: Sequence[Thing]) -> None:
        self._remove(self._connect(fleet), owner_of(fleet), found)

    def keep(self, fleet: Fleet, launch: Launch, idle: float) -> WorkerInfo:
        """Refuse: kubectl makes pods for hand work, a cluster has no machine to keep."""
        image = shapes.shape(fleet, launch).image
        raise UsageError(
            f"{fleet.name} has no machines of its own to keep",
            hint=f"kubectl run hand --rm -it --image={image} -- sh; while it runs, hostler ssh {fleet.name}",
        )

    def address(self, fleet: Fleet, machine: str) -> Address:
        """By `kubectl exec`, into the worker's container."""
        client = self._connect(fleet)
        there = [w.id for w in self._workers(client, fleet) if w.detail == "runs" and machine in ("", w.id)]
        if not there:
            named = f"pod {machine}" if machine else "pod"
            raise MissingError(f"{fleet.name} has no {named} that runs now", hint="hostler status shows it")
        if len(there) > 1:
            raise UsageError(f"{fleet.name} has {len(there)} pods", hint=f"one of {', '.join(sorted(there))}")
        words = ("kubectl", "--context", client.context, "--namespace", client.namespace, "exec")
        if shutil.which(words[0]) is None:
            raise MachineError("kubectl, which enters pods, is not on this machine", hint="install kubectl")
        return Address(there[0], there[0], "", (), command=(*words, there[0], "--container", WORKER))

    def role(self, fleet: Fleet, who: str) -> str:
        """The rights that a person and the pods need, as `kubectl apply` takes them."""
        namespace, context = (str(fleet.options.get(key) or "") for key in ("namespace", "context"))
        account = str(fleet.options.get("service_account") or "default")
        pods = f"{namespace or config.namespace_of(env.kubeconfigs(), context or None)}/{account}"
        return text.documents(rbac.role(namespace, who, pods))

    def standing(self, fleet: Fleet) -> Sequence[str]:
        """Nodes left without any pod of ours, one line each."""
        return removal.standing(self._connect(fleet), list(self._nodes))

    def _remove(self, client: KubeClient, owner: Owner, found: Sequence[Thing], *, now: bool = False) -> None:
        """Until they are gone, or had the time to be."""
        removal.remove(client, found, now=now)
        paths, end = {one.path for one in found}, self.clock() + settings.timing().grace + UPLOADING
        while self.clock() < end:
            left = removal.things(client, owner, everywhere=True)
            if paths.isdisjoint(one.path for one in left):
                break
            self.pause(LOOK)

    def _connect(self, fleet: Fleet) -> KubeClient:
        where = (str(fleet.options.get("context")), str(fleet.options.get("namespace")))
        if where not in self._known:
            self._known[where] = self.connect(fleet)
        self._client = self._known[where]
        return self._client

    def _make(self, client: KubeClient, made: Manifest, launch: Launch) -> None:
        """The Job first: its Secret belongs to it, and goes with it. Pods wait until the Secret is there."""
        there = self._free(client, made, launch)
        if there is not None:
            _complete(client, made, there)
            _fill(client, made, there)
            return
        if made.hidden:
            client.delete(removal.SECRET, made.name)  # of a Job that has ended
        try:
            job = client.create(made.job)
        except CloudUnavailable as error:  # it may have been made
            _take_back(client, made, error)
            raise
        try:
            _hide(client, made, job)
        except CloudError as error:
            _take_back(client, made, error)
            raise

    def _free(self, client: KubeClient, made: Manifest, launch: Launch) -> Body | None:
        """The Job of this very launch, if it is there and works; one that has finished makes room."""
        there = client.find(removal.JOB, made.name)
        if there is None:
            return None
        ours = made.owned.items() <= labels_of(there).items()
        if not ours or store_of(there) != launch.store:
            whose = f"store {store_of(there)}" if store_of(there) else ""
            raise cloud.taken(f"the Job {made.name}", f"namespace {client.namespace}", whose)
        if not reasons.is_finished(there) and not there["metadata"].get("deletionTimestamp"):
            return there
        client.delete(removal.JOB, made.name)
        end = self.clock() + settings.timing().grace + UPLOADING
        while client.find(removal.JOB, made.name) is not None:
            if self.clock() >= end:
                raise CloudUnavailable(
                    f"{made.name}, which has ended, could not be removed",
                    hint="run the command again later",
                )
            self.pause(LOOK)
        return None

    def _workers(self, client: KubeClient, fleet: Fleet) -> Sequence[WorkerInfo]:
        owner = owner_of(fleet)
        pods = client.list(removal.POD, owner.labels)
        worker_infos = [
            _worker(pod, reason) for pod, reason in zip(pods, watching.said_of(client, pods), strict=True)
        ]
        for job in client.list(removal.JOB, owner.labels):
            there = sum(worker.alive and worker.launch == name_of(job) for worker in worker_infos)
            missing = watching.missing_pods(job, there)
            if why := reasons.failure(job):
                worker_infos.append(
                    WorkerInfo(name_of(job), "", False, f"failed: {why}", launch=name_of(job))
                )
            elif missing > 0:
                pod_reason = reasons.of_job(job, watching.events_of(client, name_of(job)))
                words = watching.with_hint(pod_reason)
                worker_infos.append(WorkerInfo(name_of(job), "", True, words, missing, launch=name_of(job)))
        return worker_infos


def open_backend(fleet: Fleet | None = None) -> KubernetesBackend:
    return KubernetesBackend()


def _check_place(client: KubeClient) -> None:
    """The namespace is there, as far as whoever asks may see that; and the cluster answers."""
    try:
        there = client.find("Namespace", client.namespace) is not None
    except KubeRefusal as error:
        if error.status != 403:
            raise
        return
    if not there:
        raise CloudError(
            f"no namespace named {client.namespace}", hint=f"kubectl create namespace {client.namespace}"
        )


def _fill(client: KubeClient, made: Manifest, there: Body) -> None:
    """A Job of which some have left already gets as many new places: its size may grow, all else is fixed."""
    remaining = watching.missing_pods(there, 0)
    size, workers = int(there["spec"]["completions"]), int(made.job["spec"]["completions"])
    if remaining < workers:
        grown = size + workers - remaining
        client.patch(removal.JOB, made.name, {"spec": {"completions": grown, "parallelism": grown}})


def _hide(client: KubeClient, made: Manifest, job: Body) -> None:
    """Make the Secret of a Job."""
    secret = made.secret
    if secret is None:
        return
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name_of(job), "uid": job["metadata"]["uid"]}
    secret["metadata"] = {**secret["metadata"], "ownerReferences": [owner]}
    secret["stringData"] = portable(secret["stringData"])
    client.create(secret)


def _take_back(client: KubeClient, made: Manifest, why: CloudError) -> None:
    """Delete a Job that is, or may be, half made; if that fails too, the error says how."""
    try:
        client.delete(removal.JOB, made.name)
    except CloudError:
        hint = f"the Job {made.name} may be there: kubectl delete job {made.name} once it answers"
        why.hint = f"{why.hint}; {hint}" if why.hint else hint


def _complete(client: KubeClient, made: Manifest, job: Body) -> None:
    """Make the Secret of a Job whose maker died before it did."""
    try:
        _hide(client, made, job)
    except KubeRefusal as error:
        if error.status != 409:
            raise


def _worker(pod: Body, said: reasons.PodReason) -> WorkerInfo:
    """The worker of a pod; an ended pod stays for its log, until the Job is removed."""
    name, job = name_of(pod), labels_of(pod).get("batch.kubernetes.io/job-name", "")
    return WorkerInfo(name, name, said.state != reasons.GONE, watching.with_hint(said), log=name, launch=job)
