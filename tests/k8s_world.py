"""A project folder and a cluster: commands are typed here, workers are pods, with a store between.

The cluster is the stand-in, whose pods are processes of this machine; or, with HOSTLER_TEST_KUBECONFIG, a
real one. Then HOSTLER_TEST_STORE is a bucket that its pods reach, and HOSTLER_TEST_IMAGE their image. What
a real cluster's owner would do (drain a node, delete a pod) is done to it by kubectl.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cli_world import World
from gce_world import TIMES, TRAIN
from hostler.backends.kubernetes.client import KubeClient, connect
from hostler.emulators.k8s import Cluster, Pace
from hostler.records.rows import Row, rows
from hostler.spec.project import Fleet
from hostler.store import open_store

KUBECONFIG = "HOSTLER_TEST_KUBECONFIG"
IMAGE = os.environ.get("HOSTLER_TEST_IMAGE", "python:3.12-slim")
REAL = os.environ.get(KUBECONFIG, "")
PATIENCE = 600.0 if REAL else 120.0  # seconds that a cluster may take


class Pods(World):
    """`cluster` is None where a real one is used."""

    def __init__(self, root: Path, cluster: Cluster | None) -> None:
        super().__init__(root)
        self.cluster = cluster
        self._client: KubeClient | None = None
        self.name = f"walk-{secrets.token_hex(3)}"
        self.kubeconfig = Path(REAL) if cluster is None else cluster.kubeconfig
        self.volume = cluster is not None  # the store is a folder of this machine
        self.url = str(self.folder / "runs") if cluster else f"{os.environ['HOSTLER_TEST_STORE']}/{self.name}"
        self.env = {
            **self.env,
            **TIMES,
            "KUBECONFIG": str(self.kubeconfig),
            "HOSTLER_CHECKPOINT_EVERY": "0.2",
        }
        if cluster is None:
            self.env |= {"HOSTLER_MACHINES": "300", "HOSTLER_STOCKOUT": "60", "HOSTLER_GRACE": "10"}
            self.env |= {"HOSTLER_LEASE": "30", "HOSTLER_BEAT": "2"}
        self.write("train.py", TRAIN)

    def project(
        self,
        workers: int | None = 2,
        more: str = "",
        head: str = "",
        image: str = IMAGE,
        volumes: bool = True,
    ) -> None:
        """`volumes`: the store's is named here, not in `more`."""
        own = f"volumes: {{{self.url}: {{host: {self.url}}}}}, " if self.volume and volumes else ""
        size = f"workers: {workers}, " if workers is not None else ""
        taken = f"image: '{image}', " if image else ""
        fleet = f"{{backend: kubernetes, {taken}{own}{size}{more}}}"
        lines = [f"name: {self.name}", f"store: {self.url}", "checkpoint: {every: 1s}", head]
        self.write("hostler.yaml", "\n".join([*lines, "fleets:", f"  gke: {fleet}", ""]))
        if self.volume:
            Path(self.url).mkdir(exist_ok=True)

    def sweep_file(self, runs: int, name: str = "grid", **fixed: object) -> None:
        values = {"lr": list(range(runs)), **fixed}
        text = json.dumps({"name": name, "command": "python train.py", "parameters": values})
        self.write(f"{name}.yaml", text)

    def kubectl(self, *words: str) -> str:
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def things(self, kind: str) -> list[Any]:
        """Of this project: Job, Pod or Secret."""
        if self._client is None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("KUBECONFIG", str(self.kubeconfig))
                self._client = connect(Fleet("gke", "kubernetes"))
        return list(self._client.list(kind, {"hostler-project": self.name}))

    def pods(self) -> list[str]:
        """Those whose worker runs."""
        return [pod["metadata"]["name"] for pod in self.things("Pod") if _works(pod)]

    def evict(self, pod: str) -> None:
        """As a drained node does: it is told, and has its grace."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": "default"},
        }
        if self.cluster:
            self.cluster.evict(pod)
        else:
            space = self.things("Pod")[0]["metadata"]["namespace"]
            body["metadata"]["namespace"] = space  # type: ignore[index]
            self.write("eviction.json", json.dumps(body))
            path = f"/api/v1/namespaces/{space}/pods/{pod}/eviction"
            self.kubectl("create", "--raw", path, "-f", str(self.folder / "eviction.json"))

    def kill(self, pod: str) -> None:
        """Without a word."""
        if self.cluster:
            self.cluster.kill(pod)
        else:
            self.kubectl("delete", "pod", pod, "--grace-period=0", "--force")

    def started_at(self, pod: str) -> float:
        """When the worker's container was started, by the cluster."""
        found = json.loads(self.kubectl("get", "pod", pod, "-o", "json"))
        [own] = found["status"]["containerStatuses"]
        return datetime.fromisoformat(own["state"]["running"]["startedAt"]).timestamp()

    def states(self, name: str = "grid") -> dict[str, int]:
        return dict(Counter(row.state for row in self.rows(name)))

    def rows(self, name: str) -> list[Row]:
        """Looked up here: a command would cost more than the runs do."""
        return rows(open_store(self.url), [name])

    def until(self, what: Callable[[], bool], seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, self.story()
            time.sleep(0.3)

    def restricted(self, account: str) -> Path:
        """A kubeconfig of somebody who has no rights but those that Roles give."""
        if self.cluster:
            return self.cluster.kubeconfig_of(account)
        self.kubectl("create", "serviceaccount", account)
        shown = json.loads(self.kubectl("config", "view", "--minify", "--raw", "-o", "json"))
        shown["users"] = [
            {"name": "bare", "user": {"token": self.kubectl("create", "token", account).strip()}}
        ]
        shown["contexts"][0]["context"]["user"] = "bare"
        path = self.folder / "restricted.json"
        path.write_text(json.dumps(shown))
        return path

    def nodes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return found

    def lose_node(self, name: str) -> None:
        """It is gone without a word; of a real cluster only what was on it."""
        if self.cluster:
            self.cluster.lose_node(name)
            return
        for pod in self.things("Pod"):
            if pod["spec"].get("nodeName") == name:
                self.kill(pod["metadata"]["name"])

    def until_done(self, runs: int, name: str = "grid") -> None:
        self.until(lambda: self.states(name).get("done") == runs)

    def until_ended(self) -> None:
        """The Job is over, by itself."""
        self.until(lambda: not self.pods() and all(_ended(job) for job in self.things("Job")))

    def weights(self, runs: int, name: str = "grid") -> dict[int, str]:
        folder = self.folder / f"pulled-{name}"
        done = self.run("pull", name, "--outputs", "--to", str(folder), "-y", timeout=300)
        assert done.code == 0, done.err
        found = sorted(folder.rglob("weights.txt"))
        assert len(found) == runs
        return {n: path.read_text() for n, path in enumerate(found)}

    def gone(self) -> bool:
        """Nothing in the cluster is ours."""
        processes = self.cluster.processes() if self.cluster else set()
        return not processes and not any(self.things(kind) for kind in ("Job", "Pod", "Secret"))

    def story(self) -> str:
        """What there is, and what pods printed, for a test that failed."""
        said = [self.run("status").out, self.run("logs", "gke").out[-4000:]]
        return "\n".join([*said, json.dumps([pod.get("status") for pod in self.things("Pod")], indent=1)])


def _works(pod: dict[str, Any]) -> bool:
    status = pod.get("status") or {}
    own = [one for one in status.get("containerStatuses") or () if (one.get("state") or {}).get("running")]
    return bool(own) and not pod["metadata"].get("deletionTimestamp")


def _ended(job: dict[str, Any]) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions)


@contextmanager
def pods(
    root: Path, nodes: Sequence[str] = ("node-1", "node-2", "node-3"), pace: Pace = Pace()
) -> Iterator[Pods]:
    """Whatever a test leaves is removed, and that is proved. `pace` is the stand-in's."""
    if REAL:
        world = Pods(root, None)
        yield world
        _tidy(world)
        return
    with Cluster(root / "cluster", nodes=nodes, pace=pace) as cluster:
        world = Pods(root, cluster)
        yield world
        cluster.allow()
        _tidy(world)


def _tidy(world: Pods) -> None:
    if (world.folder / "hostler.yaml").exists():
        world.project()
        done = world.run("down", "gke", "--now", timeout=300)
        assert done.code == 0 and world.gone(), done.err
