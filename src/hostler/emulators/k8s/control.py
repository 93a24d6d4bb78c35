"""Controls of the stand-in that no client of the API has.

Pods are named by their name, in the namespace `default` unless another is given as NAMESPACE/NAME.
"""

from __future__ import annotations

import copy
import signal
from collections.abc import Mapping, Sequence

from hostler.emulators.k8s.controllers import events, eviction
from hostler.emulators.k8s.node import ending, nodes
from hostler.emulators.k8s.node.sandbox import Sandbox, Verdict
from hostler.emulators.k8s.resources import NODES, PODS
from hostler.emulators.k8s.rules.access import Access
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import Image, World

_SHUTDOWN = Verdict("Terminated", "Pod was terminated in response to imminent node shutdown.")
_DISK = "Pod ephemeral local storage usage exceeds the total limit of containers {}. "


class Control:
    _world: World
    _access: Access

    def add_node(
        self,
        name: str,
        cpu: float = 4,
        memory: str = "8Gi",
        gpus: int = 0,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        spot: bool = False,
    ) -> None:
        """`taints` as manifests write them. A spot node has the labels and the taint that GKE gives it."""
        size = nodes.Size(cpu, memory, gpus)
        with self._world.lock:
            node = nodes.make(self._world, name, size, labels or {}, taints, spot)
            self._world.storage.put(node)

    def evict(self, pod: str, grace: int | None = None) -> None:
        """As the eviction API: SIGTERM, the pod's grace period or the one given, SIGKILL."""
        with self._world.lock:
            eviction.evict(self._world, self.pod(pod), {"deleteOptions": {"gracePeriodSeconds": grace}})

    def kill(self, pod: str, reason: str = "OOMKilled") -> None:
        """SIGKILL to all its containers: they end with 137, and that reason."""
        with self._world.lock:
            self._sandbox(pod).kill(reason)

    def exceed_disk(self, pod: str, limit: str = "10Mi") -> None:
        """As a kubelet that finds more files than the pod's limit allows: an end without a grace period."""
        with self._world.lock:
            sandbox, text = self._sandbox(pod), _DISK.format(limit)
            sandbox.verdict, sandbox.deadline = Verdict("Evicted", text), self._world.clock()
            events.record(self._world, self.pod(pod), events.WARNING, "Evicted", text, "kubelet")
            sandbox.kill("Error")

    def signal(self, pod: str, number: int = signal.SIGTERM) -> None:
        """To process 1 of each container of a pod, the pod itself being left as it is."""
        with self._world.lock:
            self._sandbox(pod).send(number)

    def lose_node(self, name: str) -> None:
        """The machine is gone, without a word: its processes now, its object and its pods later."""
        with self._world.lock:
            self._node(name)
            self._world.silent[name] = self._world.clock()
            for pod in self._on(name):
                sandbox = self._world.sandbox(pod)
                if sandbox is not None:
                    sandbox.kill()
        self._world.poke()

    def shut_down_node(self, name: str, grace: float = 15.0) -> None:
        """As a spot node that is taken away in good order: pods get SIGTERM, and so many seconds at most.

        The node goes when they have ended."""
        with self._world.lock:
            node = self._node(name)
            self._world.leaving.add(name)
            self._world.storage.change(node, lambda one: one["spec"].update(unschedulable=True))
            for pod in self._on(name):
                sandbox = self._world.sandbox(pod)
                if sandbox is not None and pod["status"]["phase"] in ("Pending", "Running"):
                    eviction.mark(self._world, pod, "TerminationByKubelet", _SHUTDOWN.message)
                    limit = min(grace, pod["spec"].get("terminationGracePeriodSeconds", 30))
                    ending.ask(self._world, pod, sandbox, _SHUTDOWN, limit)
        self._world.poke()

    def remove_node(self, name: str) -> None:
        """The object of a node; pods that still are on it go a little later."""
        with self._world.lock:
            self._world.storage.remove(self._node(name))

    def pull_fails(self, image: str, message: str = "") -> None:
        """Images of that name, which may have * in it, cannot be pulled: their registry does not answer,
        unless it says a message."""
        with self._world.lock:
            self._world.unpullable[image] = message

    def pull_works(self, image: str) -> None:
        with self._world.lock:
            self._world.unpullable.pop(image, None)

    def image(
        self,
        name: str,
        entrypoint: Sequence[str] = (),
        cmd: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Sets the command of an image, for containers without one."""
        with self._world.lock:
            self._world.images[name] = Image(tuple(entrypoint), tuple(cmd), dict(env or {}))

    def forbid(self, verb: str, resource: str, namespace: str = "") -> None:
        """403 from now on: `forbid("create", "jobs")`, `forbid("get", "pods/log")`; * is all."""
        with self._world.lock:
            self._access.refused.add((verb, resource, namespace))

    def allow(self) -> None:
        """The end of everything forbidden."""
        with self._world.lock:
            self._access.refused.clear()

    def forget(self) -> None:
        """The past is compacted: watches from before now get 410."""
        with self._world.lock:
            self._world.storage.forget()

    def pod(self, name: str) -> Obj:
        namespace, _, plain = name.rpartition("/")
        with self._world.lock:
            record = self._world.storage.find(PODS, namespace or "default", plain)
            if record is None:
                raise LookupError(f"unknown pod {name}")
            return copy.deepcopy(record)

    def began(self, pod: str) -> float:
        """When the first container of a pod was started, to more than the whole seconds of its status."""
        with self._world.lock:
            return min(run.began for runs in self._sandbox(pod).runs.values() for run in runs)

    def _sandbox(self, name: str) -> Sandbox:
        sandbox = self._world.sandbox(self.pod(name))
        if sandbox is None:
            raise LookupError(f"pod {name} has not started")
        return sandbox

    def _node(self, name: str) -> Obj:
        record = self._world.storage.find(NODES, "", name)
        if record is None:
            raise LookupError(f"unknown node {name}")
        return record

    def _on(self, node: str) -> list[Obj]:
        return [pod for pod in self._world.storage.all(PODS) if pod["spec"].get("nodeName") == node]
