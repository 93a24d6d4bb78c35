"""A cluster to try things on, through clients that nobody here wrote: lightkube, and the program kubectl.

It is the stand-in; or, with HOSTLER_TEST_KUBECONFIG, a real one, each test in a namespace of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lightkube import Client, KubeConfig
from lightkube.codecs import from_dict
from lightkube.core.exceptions import ApiError
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Namespace, Pod
from lightkube.types import CascadeType

from hostler import proctable
from hostler.emulators.k8s import Cluster, Pace

PATIENCE = 600.0 if os.environ.get("HOSTLER_TEST_KUBECONFIG") else 120.0  # seconds
IMAGE = os.environ.get("HOSTLER_TEST_IMAGE", "python:3.12-slim")
REAL = os.environ.get("HOSTLER_TEST_KUBECONFIG", "")
Manifest = dict[str, Any]


class Kube:
    """A namespace of a cluster. `pods` and `jobs` are given as plain dictionaries, whoever answered."""

    def __init__(self, config: Path, namespace: str) -> None:
        self.config, self.namespace = config, namespace
        self.client = Client(config=KubeConfig.from_file(str(config)), namespace=namespace)

    def kubectl(self, *words: str, given: str = "", fine: bool = True) -> str:
        """What it prints, on both streams if it is to fail."""
        command = ["kubectl", "--kubeconfig", str(self.config), "-n", self.namespace, *words]
        home = {"HOME": str(self.config.parent), "PATH": os.environ["PATH"]}
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, env=home, timeout=PATIENCE
        )
        assert (done.returncode == 0) == fine, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout if fine else done.stdout + done.stderr

    def create(self, manifest: Manifest) -> Manifest:
        return plain(self.client.create(from_dict(manifest)))

    def refused(self, manifest: Manifest) -> ApiError:
        with pytest.raises(ApiError) as caught:
            self.create(manifest)
        return caught.value

    def job(self, name: str = "j") -> Manifest:
        return plain(self.client.get(Job, name))

    def pod(self, name: str) -> Manifest:
        return plain(self.client.get(Pod, name))

    def pods(self, job: str = "j", index: int | None = None) -> list[Manifest]:
        """Oldest first."""
        labels = {"batch.kubernetes.io/job-name": job}
        if index is not None:
            labels["batch.kubernetes.io/job-completion-index"] = str(index)
        found = [plain(one) for one in self.client.list(Pod, labels=labels)]
        return sorted(found, key=lambda one: int(one["metadata"]["resourceVersion"]))

    def running(self, count: int, job: str = "j") -> list[str]:
        """Names of that many pods that are there and ready, waited for."""

        def names() -> list[str]:
            return sorted(
                one["metadata"]["name"]
                for one in self.pods(job)
                if one["status"].get("phase") == "Running" and not one["metadata"].get("deletionTimestamp")
            )

        until(lambda: len(names()) == count, f"{count} running pods", lambda: self.pods(job))
        return names()

    def ended(self, name: str = "j") -> tuple[str, str]:
        """Which condition a Job ended with, and its reason; waited for."""

        def found() -> list[tuple[str, str]]:
            known = self.job(name).get("status", {}).get("conditions") or []
            return [
                (one["type"], one["reason"])
                for one in known
                if one["status"] == "True" and one["type"] in ("Complete", "Failed")
            ]

        until(lambda: bool(found()), f"the end of {name}", lambda: (self.job(name), self.pods(name)))
        return found()[0]

    def log(self, pod: str, container: str | None = None, **words: Any) -> str:
        return "".join(self.client.log(pod, container=container, **words))

    def said(self, pod: str, words: str) -> str:
        """A pod's log once it has those words."""
        until(
            lambda: words in self._log(pod), f"{words!r} from {pod}", lambda: (self._log(pod), self.pod(pod))
        )
        return self.log(pod)

    def _log(self, pod: str) -> str:
        try:
            return self.log(pod)
        except ApiError:
            return ""  # not started yet

    def over(self, name: str = "p") -> Manifest:
        """A pod that has ended, waited for."""
        finished = ("Succeeded", "Failed")
        until(
            lambda: self.pod(name)["status"]["phase"] in finished,
            f"the end of {name}",
            lambda: self.pod(name),
        )
        return self.pod(name)

    def output(self, *containers: Manifest | str, **more: Any) -> str:
        """What a pod prints that succeeds."""
        self.create(pod(*containers, **more))
        found = self.over()
        assert found["status"]["phase"] == "Succeeded", (found["status"], self._log("p"))
        return self.log("p", "main")

    def delete(self, name: str = "j", cascade: CascadeType | None = CascadeType.BACKGROUND) -> None:
        self.client.delete(Job, name, cascade=cascade)


def until(true: Callable[[], bool], what: str, about: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}: {about()}")
        time.sleep(0.03)


def plain(thing: Any) -> Manifest:
    found: Manifest = json.loads(json.dumps(thing.to_dict()))
    return found


def script(text: str, **more: Any) -> Manifest:
    """A container that runs a shell script."""
    return {"name": "main", "image": IMAGE, "command": ["sh", "-c", text], **more}


def pod(*containers: Manifest | str, name: str = "p", **more: Any) -> Manifest:
    """A pod of its own; `more` goes into its spec."""
    listed = [script(one) if isinstance(one, str) else one for one in containers]
    always = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    spec = {**always, "containers": listed, **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def job(container: Manifest | str = "true", name: str = "j", count: int = 1, **more: Any) -> Manifest:
    """An Indexed Job; `more` goes into its spec, `pod` of it into its pods'."""
    given = more.pop("pod", {})
    one = script(container) if isinstance(container, str) else container
    always = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    template = {"spec": {**always, "containers": [one], **given}}
    spec = {"completionMode": "Indexed", "completions": count, "parallelism": count, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {**spec, **more}}


def reasons(thing: Manifest) -> dict[str, str]:
    """The reasons of the conditions that hold."""
    known = thing.get("status", {}).get("conditions") or []
    return {one["type"]: one.get("reason", "") for one in known if one["status"] == "True"}


def code(pod: Manifest) -> int:
    return int(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"])


@contextmanager
def namespace(config: Path) -> Iterator[Kube]:
    """A fresh one, gone at the end with all that is in it."""
    name = f"hostler-test-{secrets.token_hex(4)}"
    client = Client(config=KubeConfig.from_file(str(config)))
    client.create(from_dict({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    try:
        yield Kube(config, name)
    finally:
        client.delete(Namespace, name)


class StandIn(Kube):
    """The namespace `default` of the stand-in, and the stand-in itself."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.kubeconfig, "default")
        self.cluster = cluster


@contextmanager
def stand_in(folder: Path, pace: Pace | None = None) -> Iterator[StandIn]:
    with Cluster(folder, pace=pace) as cluster:
        yield StandIn(cluster)
        living = cluster.processes()
        cluster.close()
        assert not [pid for pid in living if proctable.start_of(pid)]
