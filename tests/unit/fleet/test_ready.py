from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hostler.backends.base import Capabilities, MachineInfo, Question
from hostler.backends.local.backend import LocalBackend
from hostler.cli.machines.hosts import host_of
from hostler.cli.machines.ssh import forward, ssh_command
from hostler.errors import HostError, HostUnreachable, MachineError, UsageError
from hostler.fleet.ready import drivers, folder_of, ready, variables
from hostler.remote.target import SshTarget
from hostler.spec.project import Fleet, Project
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore

LAB = Fleet("lab", "ssh", options={"hosts": ["n1", "me@n2:2222"], "key": "/k"})


class Elsewhere(LocalBackend):
    """Machines that answer what they are told to."""

    capabilities = Capabilities(restarts=True)

    def __init__(self, *machines: MachineInfo) -> None:
        self.machines, self.asked = machines, Question()

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        self.asked = question
        return self.machines


def test_unseen_store_folder_is_refused_and_left_empty(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "runs")
    machines = Elsewhere(MachineInfo("n1", sees=True), MachineInfo("n2"))
    with pytest.raises(UsageError, match="n2 cannot see the store's folder") as met:
        ready(machines, LAB, store)
    assert all(way in met.value.hint for way in ("s3://", "all of them share", "ssh://"))
    assert machines.asked.path.startswith(f"{tmp_path}/runs/probe/")
    assert list(store.list("")) == []


def test_missing_engine_is_an_error_before_submission(tmp_path: Path) -> None:
    class Here(Elsewhere):
        capabilities = Capabilities(restarts=True, shares_disk=True)

    assert ready(Here(), LAB, FolderStore(tmp_path)).folders == {}
    with pytest.raises(HostError, match="there is no sbatch here"):
        ready(Here(MachineInfo("here", "there is no sbatch here")), LAB, FolderStore(tmp_path))


def test_machines_that_see_the_folder_use_it(tmp_path: Path) -> None:
    found = ready(Elsewhere(MachineInfo("n1", sees=True)), LAB, FolderStore(tmp_path))
    assert found.folders == {"n1": str(tmp_path)}


def test_machines_that_are_down_are_left_out_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines = Elsewhere(MachineInfo("n1", sees=True), MachineInfo("n2", problem="n2 cannot be reached"))
    assert set(ready(machines, LAB, FolderStore(tmp_path)).folders) == {"n1"}
    assert "n2 is left out: n2 cannot be reached; hostler up" in capsys.readouterr().err


def test_no_machine_at_all_is_an_error(tmp_path: Path) -> None:
    one, two = MachineInfo("n1", problem="n1 is down", hint="h"), MachineInfo("n2", problem="n2 is old")
    with pytest.raises(HostError, match="n1 is down"):
        ready(Elsewhere(one), LAB, FolderStore(tmp_path))
    with pytest.raises(HostUnreachable, match="none of the 2 hosts can be used: n1 is down; n2 is old"):
        ready(Elsewhere(one, two), LAB, FolderStore(tmp_path))


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("/data/runs", "/data/runs"),
        ("ssh://n1/data/runs", "/data/runs"),
        ("ssh://n1/~/runs", "~/runs"),
        ("s3://b/p", ""),
    ],
)
def test_where_a_machine_that_has_the_folder_finds_it(url: str, folder: str) -> None:
    assert folder_of(url) == folder


def test_only_what_workers_need_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "MY_TOKEN", "OTHER", "HOSTLER_LEASE"):
        monkeypatch.setenv(name, "7")
    monkeypatch.setenv("HOSTLER_STORE", "x")
    store = MemoryStore()
    store.url = "s3://b/p"
    found = variables(store)
    assert {"AWS_SECRET_ACCESS_KEY", "HOSTLER_LEASE"} <= set(found)
    assert not {"AZURE_STORAGE_ACCOUNT_KEY", "MY_TOKEN", "OTHER", "HOSTLER_STORE", "HOSTLER_CACHE"} & set(
        found
    )
    store.url = "ssh://n1/x"
    assert "AWS_SECRET_ACCESS_KEY" not in variables(store)


def test_host_is_found_in_the_fleet_or_by_ssh(tmp_path: Path) -> None:
    project = Project("p", tmp_path, "s", fleets={"lab": LAB})
    assert host_of(project, "n2") == SshTarget("n2", "me", 2222, "/k")
    assert host_of(project, "me@n2:2222").key == "/k"
    assert host_of(project, "you@elsewhere") == SshTarget("elsewhere", "you")
    with pytest.raises(UsageError, match="no host was named"):
        host_of(project, None)


def test_forwarded_ports_are_open_to_this_machine_alone() -> None:
    command = ssh_command(SshTarget("n1", "me"), ("ls", "a b"), ("6006", "8080:80"))
    assert command[command.index("-L") + 1] == "127.0.0.1:6006:127.0.0.1:6006"
    assert "127.0.0.1:8080:127.0.0.1:80" in command and command[-2:] == ["n1", "ls 'a b'"]
    assert ssh_command(SshTarget("n1"), ("nvidia-smi | head",))[-1] == "nvidia-smi | head"
    for bad in ("x", "0", "70000", "0.0.0.0:80:80", "1:2:3"):
        with pytest.raises(UsageError, match="not a port"):
            forward(bad)


def test_missing_driver_is_named_with_its_platform(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PIP_NO_INDEX": "1", "HOSTLER_CACHE": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)

    store = MemoryStore()
    store.url = "s3://bucket/runs"
    far = [MachineInfo("pods", python="3.12.0", platform=("linux", "riscv64", "glibc", "2.36"))]
    with pytest.raises(MachineError, match=r"no obstore for Python 3.12 on linux riscv64 with glibc 2.36"):
        drivers(store, far)
    assert drivers(store, far, in_image=True) == {}
    said = capsys.readouterr().err
    assert "linux riscv64 with glibc 2.36" in said and "`pip install obstore`" in said
