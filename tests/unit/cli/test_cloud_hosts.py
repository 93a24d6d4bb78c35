"""Onto a VM by a person's own ssh: with the project's key, and only if it is the VM that told its keys."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hostler.backends.base import Address, Capabilities
from hostler.cli.machines import hosts
from hostler.cli.machines.ssh import ssh_command
from hostler.cli.machines.sync import mirror_of
from hostler.errors import UsageError
from hostler.fleet.machines import key_folder
from hostler.remote import keypair
from hostler.spec.project import Fleet, Project, default_project

# With SHLVL bash does not read ~/.bashrc, which may do anything on the machine of the tests.
CONFIG = """\
SetEnv SHLVL=1
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/allowed
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
"""
CAPABILITIES = Capabilities(restarts=True, makes_machines=True)


@dataclass
class Vms:
    """A cloud of one VM, as far as its address is asked for."""

    found: Address
    capabilities: Capabilities = CAPABILITIES
    say: Callable[[str], None] = print

    def address(self, fleet: Fleet, machine: str) -> Address:
        assert fleet.scope == "cifar" and machine in ("", self.found.name)
        return self.found

    def _other(self, *given: object, **named: object) -> None:
        raise AssertionError("only the address is asked for")

    plan = start = list = stop = logs = survey = completed = likely = remains = remove = keep = _other


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    fleets = {"burst": Fleet(name="burst", backend="gce", options={"zones": ["us-east1-b"]})}
    return replace(default_project(tmp_path), name="cifar", fleets=fleets)


@pytest.fixture
def vm(project: Project, tmp_path: Path) -> Iterator[Address]:
    """An sshd with keys of its own, which lets the project's key in."""
    Path("/run/sshd").mkdir(exist_ok=True)
    folder = tmp_path / "sshd"
    folder.mkdir()
    host = folder / "host"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host)], check=True)
    (folder / "allowed").write_text(keypair.public_key(key_folder(project)) + "\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "config").write_text(CONFIG.format(port=port, folder=folder))
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    process = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "config")], stderr=subprocess.DEVNULL)
    try:
        _await(port)
        key = " ".join(host.with_suffix(".pub").read_text().split()[:2])
        yield Address("hostler-cifar-burst-keep", "127.0.0.1", "root", (key,), port)
    finally:
        process.kill()
        process.wait()


@pytest.mark.needs("sshd")
def test_vm_is_reached_by_fleet_name_with_project_key(
    project: Project, vm: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "backend_of", lambda fleet: Vms(vm))
    for name in ("burst", "burst/hostler-cifar-burst-keep", None):
        done = _ssh(project, name)
        assert done.returncode == 0 and done.stdout == "here\n", done.stderr


@pytest.mark.needs("sshd")
def test_project_syncs_onto_a_vm_like_any_machine(
    project: Project, vm: Address, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(hosts, "backend_of", lambda fleet: Vms(vm))
    project = replace(project, root=tmp_path / "code")
    project.root.mkdir()
    (project.root / "train.py").write_text("print(1)\n")
    place = tmp_path / "there"
    mirror = mirror_of(project, hosts.host_of(project, "burst"), str(place))
    try:
        assert mirror.push().sent
        assert (place / "train.py").read_text() == "print(1)\n"
        assert mirror.push().sent == 0
    finally:
        mirror.close()


@pytest.mark.needs("sshd")
def test_machine_with_other_host_keys_is_not_trusted(
    project: Project, vm: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = keypair.public_key(project.root / "other").rsplit(" ", 1)[0]
    monkeypatch.setattr(hosts, "backend_of", lambda fleet: Vms(replace(vm, host_keys=(other,))))
    done = _ssh(project, "burst")
    assert done.returncode == 255 and "Host key verification failed" in done.stderr


def test_key_is_made_once_with_a_private_half(tmp_path: Path) -> None:
    first = keypair.public_key(tmp_path / "keys")
    assert first == keypair.public_key(tmp_path / "keys") and first.startswith("ssh-ed25519 ")
    assert keypair.private_key(tmp_path / "keys").stat().st_mode & 0o077 == 0


def test_which_of_several_machines_is_meant_must_be_said(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Fleet(name="lab", backend="ssh", options={"hosts": ["gpu1"]})
    both = replace(project, fleets={**project.fleets, "lab": lab})
    with pytest.raises(UsageError, match="no host was named") as error:
        hosts.host_of(both, None)
    assert "gpu1, burst" in error.value.hint


def _ssh(project: Project, name: str | None) -> subprocess.CompletedProcess[str]:
    words = ssh_command(hosts.host_of(project, name), ["echo here"])
    quiet = [words[0], "-F", "none", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", *words[1:]]
    return subprocess.run(quiet, capture_output=True, text=True, timeout=120)


def _await(port: int) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("sshd did not start")
