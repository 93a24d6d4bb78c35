"""How a person gets into a pod: by kubectl, with words as they are."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hostler.backends.kubernetes.backend import KubernetesBackend
from hostler.cli.machines import hosts
from hostler.cli.machines.ssh import inside_command
from hostler.errors import MachineError, MissingError, UsageError
from hostler.spec.project import Fleet, Project, default_project

FLEET = Fleet("gke", "kubernetes")


def pod(name: str) -> dict[str, Any]:
    running = [{"name": "worker", "state": {"running": {}}}]
    return {"metadata": {"name": name}, "status": {"phase": "Running", "containerStatuses": running}}


@dataclass
class Listed:
    """A cluster that lists these pods and no Job."""

    names: tuple[str, ...]
    context: str = "mine"
    namespace: str = "train"

    def list(self, kind: str, labels: object = None, fields: object = None) -> list[dict[str, Any]]:
        return [pod(name) for name in self.names] if kind == "Pod" else []


def backend(*names: str) -> KubernetesBackend:
    return KubernetesBackend(connect=lambda fleet: Listed(names))  # type: ignore[arg-type, return-value]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").write_text("#!/bin/sh\n")
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return replace(default_project(tmp_path), fleets={"gke": FLEET})


@pytest.mark.parametrize("name", [None, "gke", "gke/p-0"])
def test_the_only_pod_is_entered_by_kubectl(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    monkeypatch.setattr(hosts, "backend_of", lambda fleet: backend("p-0"))
    found = hosts.entered(project, name)
    assert found is not None
    begin = ["kubectl", "--context", "mine", "--namespace", "train", "exec", "p-0", "--container", "worker"]
    assert inside_command(found, ["ls", "a b"]) == [*begin, "--stdin", "--", "ls", "a b"]
    assert inside_command(found, ["ls | wc"])[-3:] == ["sh", "-c", "ls | wc"]
    assert inside_command(found, [], terminal=True)[-3:] == ["--tty", "--", "sh"]
    with pytest.raises(UsageError, match="-L needs ssh") as error:
        inside_command(found, [], ["6006"])
    assert "kubectl port-forward p-0 6006" in error.value.hint
    with pytest.raises(UsageError, match="not reached by ssh"):
        hosts.host_of(project, "gke")


def test_of_several_pods_one_must_be_named_and_must_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="has 2 pods"):
        backend("p-0", "p-1").address(FLEET, "")
    assert backend("p-0", "p-1").address(FLEET, "p-1").name == "p-1"
    with pytest.raises(MissingError, match="no pod p-9 that runs now"):
        backend("p-0").address(FLEET, "p-9")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MachineError, match="is not on this machine"):
        backend("p-0").address(FLEET, "")
    assert hosts.entered(project, "gpu1") is None


def test_there_is_no_machine_to_keep() -> None:
    from hostler.backends.base import Launch

    with pytest.raises(UsageError, match="no machines of its own to keep") as error:
        backend().keep(FLEET, Launch("s3://b"), 60.0)
    assert "kubectl run" in error.value.hint
