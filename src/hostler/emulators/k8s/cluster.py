"""The stand-in as a test or a demo uses it: started on a loopback port, gone with the block.

    with Cluster(folder) as cluster:
        subprocess.run(["kubectl", "--kubeconfig", str(cluster.kubeconfig), "get", "nodes"])

Containers are real processes, in namespaces of their own, and none outlives the process that holds the
cluster, whatever happens to it. Linux only; the rights of root are needed, and the program openssl.
"""

from __future__ import annotations

import base64
import copy
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import yaml

from hostler import proctable
from hostler.emulators.k8s.api.api import Api
from hostler.emulators.k8s.api.server import Server
from hostler.emulators.k8s.control import Control
from hostler.emulators.k8s.controllers.controllers import Controllers
from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.node import kubelet
from hostler.emulators.k8s.node.network import Network
from hostler.emulators.k8s.pace import Pace
from hostler.emulators.k8s.resources import NODES, PODS
from hostler.emulators.k8s.rules.access import ADMIN, Access
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World
from hostler.frozen import dataclass

_NAMESPACES = ("default", "kube-system")


class Cluster(Control):
    """Three nodes of 4 CPUs and 8 GiB each, unless `nodes` names others; `add_node` adds any kind."""

    def __init__(
        self, folder: Path, *, nodes: Sequence[str] = ("node-1", "node-2", "node-3"), pace: Pace | None = None
    ) -> None:
        self._server = Server()
        self._folder = Path(folder)
        network = Network(self._server.server_port)
        self._world = World(self._folder / "cluster", pace or Pace(), network)
        self._access = Access(self._world.storage)
        self._world.issue, self._world.server = self._access.issue, ("127.0.0.1", self._server.server_port)
        self._server.api, self._server.access = Api(self._world, self._access), self._access
        self._controllers = Controllers(self._world)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="k8s", daemon=True
        )
        self._first_nodes = tuple(nodes)
        self._authority = b""
        self.kubeconfig = self._folder / "kubeconfig"

    def __enter__(self) -> Cluster:
        if os.geteuid() != 0:
            raise PermissionError("the stand-in for Kubernetes gives containers namespaces, as root only can")
        self._world.root.mkdir(parents=True, exist_ok=True)
        made = make(self._world.root)
        self._server.secure(made.context())
        self._authority = made.certificate.read_bytes()
        self._world.authority = self._authority.decode()
        self._write_config(self.kubeconfig, ADMIN, "default")
        with self._world.lock:
            for name in _NAMESPACES:
                self._world.storage.put(self._namespace(name))
        for name in self._first_nodes:
            self.add_node(name)
        self._controllers.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """No process of any pod is left when this returns."""
        self._controllers.stop()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        with self._world.lock:
            kubelet.stop(self._world)
        shutil.rmtree(self._world.root, ignore_errors=True)

    @property
    def url(self) -> str:
        return f"https://{self._server.host}"

    @property
    def nodes(self) -> list[str]:
        with self._world.lock:
            return [record["metadata"]["name"] for record in self._world.storage.all(NODES)]

    @property
    def requests(self) -> list[tuple[str, str]]:
        """Everything that was asked so far: method and path."""
        return list(self._server.requests)

    def pods(self, namespace: str = "default") -> list[Obj]:
        with self._world.lock:
            return copy.deepcopy(self._world.storage.all(PODS, namespace))

    def processes(self) -> set[int]:
        """Everything that runs in a container, as process ids of this machine."""
        with self._world.lock:
            launchers = [run.launcher for box in self._world.sandboxes.values() for run in box.living()]
        table = proctable.table()
        return {pid for launcher in launchers for pid in proctable.below(table, launcher)}

    def pids(self, pod: str) -> set[int]:
        """The processes of one pod."""
        with self._world.lock:
            launchers = [run.launcher for run in self._sandbox(pod).living()]
        table = proctable.table()
        return {pid for launcher in launchers for pid in proctable.below(table, launcher)}

    def kubeconfig_of(self, account: str, namespace: str = "default") -> Path:
        """A kubeconfig with the rights of a service account: those that Roles and RoleBindings give it."""
        path = self._folder / f"kubeconfig-{namespace}-{account}"
        return self._write_config(path, f"system:serviceaccount:{namespace}:{account}", namespace)

    def _write_config(self, path: Path, user: str, namespace: str) -> Path:
        token = self._access.issue(user)
        return write(path, self.url, self._authority, token, namespace)

    def _namespace(self, name: str) -> Obj:
        labels = {"kubernetes.io/metadata.name": name}
        meta: Obj = {"name": name, "uid": self._world.new_uid(), "labels": labels}
        meta["creationTimestamp"] = stamp(self._world.clock())
        status = {"phase": "Active"}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta, "spec": {}, "status": status}


# A certificate for the loopback address, made anew for each cluster: clients send tokens over TLS only.


@dataclass(frozen=True)
class Certificate:
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.load_cert_chain(self.certificate, self.key)
        return found


def make(folder: Path) -> Certificate:
    made = Certificate(folder / "ca.crt", folder / "ca.key")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += [
        "-days",
        "30",
        "-subj",
        "/CN=stand-in",
        "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:localhost",
    ]
    command += ["-keyout", str(made.key), "-out", str(made.certificate)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"openssl made no certificate: {done.stderr.strip()}")
    return made


# The file that leads kubectl and other clients to the stand-in.


CONTEXT = "stand-in"


def write(path: Path, url: str, authority: bytes, token: str, namespace: str) -> Path:
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(authority).decode()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "contexts": [
            {"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": namespace}}
        ],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    path.chmod(0o600)
    return path
