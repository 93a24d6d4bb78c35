"""`hostler doctor` of a machine without fleets: what it has, by real programs or by ones of that name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import servers
from hostler.backends import doctor as asking
from hostler.backends import registry
from hostler.backends.doctor import Check
from hostler.backends.slurm import doctor as slurm
from hostler.backends.ssh import doctor as ssh
from hostler.cli.begin import doctor
from hostler.cli.doctor import clock, credentials, packages
from hostler.cli.main import declared
from hostler.spec.project import Fleet

CLOUDS = ("AWS_", "GOOGLE_", "AZURE_", "CLOUDSDK_", "KUBECONFIG", "STORAGE_", "GCE_", "SSH_", "SLURM_")
PODS = [name for name in registry.BACKENDS if name == "kubernetes"]  # which may be left out
KUBECONFIG = """
current-context: lab
contexts: [{name: lab, context: {cluster: c, namespace: team}}]
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443"}}]
users: []
"""


class Machine:
    """A home and a PATH of its own."""

    def __init__(self, root: Path) -> None:
        self.home, self.bin = root / "home", root / "bin"
        self.home.mkdir()
        self.bin.mkdir()

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def file(self, name: str, text: str) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    for name in list(os.environ):
        if name.startswith(CLOUDS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("PATH", str(made.bin))
    monkeypatch.chdir(tmp_path)
    return made


def only(found: Iterator[Check]) -> Check:
    [one] = found
    return one


def all_of() -> list[dict[str, str]]:
    answer = CliRunner().invoke(declared("doctor"), ["--json"], standalone_mode=False)
    assert answer.exception is None
    found: list[dict[str, str]] = json.loads(answer.output)
    return found


def test_bare_machine_has_no_bad_findings_but_uses_named(machine: Machine) -> None:
    found = {check["what"]: check for check in all_of()}
    for what in ("ssh", "slurm", *PODS, "google", "amazon", "azure", "conda"):
        assert found[what]["level"] == "none"
        assert "needed only for" in found[what]["detail"]
    assert not [check for check in found.values() if check["level"] == "bad"]
    assert {
        "clock",
        "disk",
        "cache",
        "gpu",
        "torch",
        "packages",
        "python",
        "hostler",
        "store",
    } <= found.keys()


def test_programs_that_hang_do_not_hold_the_doctor_up(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("git", "uv", "ssh", "ssh-add", "sbatch", "sinfo"):
        machine.program(name, "/bin/sleep 300\necho too late")  # a child of it holds the pipes
    monkeypatch.setattr(asking.ask, "__defaults__", (0.2,))
    monkeypatch.setattr(slurm, "CONTROLLER", 0.2)
    begun = time.monotonic()
    found = {check["what"]: check["detail"] for check in all_of()}
    assert time.monotonic() - begun < 60
    assert "not within 0.2 s" in found["slurm"] and "does not answer" in found["git"]


def test_patience_with_all_of_them_is_less_than_three_seconds(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks are asked at the same time, so the longest of them counts."""
    waited: list[float] = []

    def silent(words: list[str], patience: float = asking.PATIENCE) -> asking.ProgramOutput:
        waited[-1] += patience
        return asking.ProgramOutput(None, err="not within its time")

    for name in ("git", "uv", "ssh", "ssh-add", "sbatch", "sinfo", "kubectl"):
        machine.program(name, "exit 0")
    for module in ("cli.doctor.this_machine", "backends.ssh.doctor", "backends.slurm.doctor"):
        monkeypatch.setattr(f"hostler.{module}.ask", silent)
    for look in doctor._of_machine(None, str(machine.home)):
        waited.append(0.0)
        list(look())
    assert sum(waited) > 3 > max(waited)


def test_slurm_is_asked_for_its_partitions(machine: Machine) -> None:
    machine.program("sbatch", "echo slurm 23.11.4")
    machine.program("sinfo", "echo gpu; echo cpu; echo gpu")
    assert only(slurm.check(False)) == Check(
        "ok", "slurm", "slurm 23.11.4; its controller answers; partitions: gpu, cpu"
    )


@pytest.mark.parametrize(("asked", "level"), [(False, "warn"), (True, "bad")])
def test_silent_slurm_controller_is_quoted(machine: Machine, asked: bool, level: str) -> None:
    machine.program("sbatch", "echo slurm 23.11.4")
    machine.program("sinfo", "echo slurm_load_partitions: Unable to contact slurm controller >&2; exit 1")
    found = only(slurm.check(asked))
    assert found.level == level
    assert found.detail.endswith("Unable to contact slurm controller") and "SLURM_CONF" in found.todo


def test_tool_needed_by_a_fleet_and_missing_is_bad(machine: Machine) -> None:
    assert only(slurm.check(True)).level == only(ssh.check(True)).level == "bad"
    assert "login: HOST" in only(slurm.check(True)).todo


def test_ssh_and_slurm_are_checked_only_where_needed() -> None:
    cluster, lab, pods = Fleet("c", "slurm"), Fleet("lab", "ssh"), Fleet("k", "kubernetes")
    far = Fleet("far", "slurm", options={"login": "gate"})
    fleets = [(), (cluster,), (lab,), (pods,), (far,)]
    assert [ssh.wanted(some, "/store") for some in fleets] == [False, False, True, False, True]
    assert [slurm.wanted(some) for some in fleets] == [False, True, False, False, False]
    assert ssh.wanted((), "ssh://gate/runs") and not ssh.wanted((), "s3://b")


def test_only_fleets_of_google_miss_its_credentials(machine: Machine) -> None:
    levels = {
        kind: next(iter(credentials.credentials([Fleet("f", kind)], "/store"))) for kind in ("gce", "slurm")
    }
    assert levels["gce"].level == "warn" and levels["slurm"].level == "none"
    assert levels["slurm"].detail.endswith("needed only for gs:// and `backend: gce`")


@pytest.mark.needs("ssh-agent")
def test_ssh_keys_are_counted_and_never_shown(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"] + os.pathsep + os.defpath)
    none = only(ssh.check(False))
    assert none.level == "none" and "ssh-keygen" in none.todo and "no keys in ~/.ssh" in none.detail
    machine.file(".ssh/known_hosts", "# a note\na ssh-ed25519 AAAA\nb ssh-ed25519 AAAA\nb ssh-rsa AAAA\n")
    key, door = machine.home / ".ssh" / "id_ed25519", machine.home / "agent"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", key], check=True)
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", door], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(door))
        end = time.monotonic() + 60
        while subprocess.run(["ssh-add", "-q", key], capture_output=True).returncode:
            assert time.monotonic() < end, "the agent never came"
            time.sleep(0.05)
        found = only(ssh.check(True))
    finally:
        agent.kill()
        agent.wait()
    assert found.level == "ok" and found.detail.startswith("OpenSSH")
    assert found.detail.endswith("; 1 key in ~/.ssh, 1 in an agent; 2 known hosts")


def test_the_chosen_context_of_a_kubeconfig_is_named(machine: Machine) -> None:
    kubernetes = servers.library("hostler.backends.kubernetes.doctor")
    assert only(kubernetes.check(True)).level == "none"  # the fleet's own check says so
    machine.file(".kube/config", KUBECONFIG)
    found = only(kubernetes.check(False))
    assert found.level == "ok"
    assert found.detail.startswith(
        "context lab at https://10.0.0.1:6443, namespace team; kubectl is not installed"
    )
    machine.program("kubectl", "exit 1")
    assert only(kubernetes.check(False)).detail.endswith("namespace team")
    machine.file(".kube/config", KUBECONFIG.replace("current-context: lab", "current-context: lob"))
    assert only(kubernetes.check(False)).level == "warn"
    machine.file(".kube/config", "[1, 2")
    assert "cannot be read" in only(kubernetes.check(False)).detail


def keys(url: str = "/store") -> dict[str, Check]:
    return {check.what: check for check in credentials.credentials((), url)}


def test_variables_with_keys_are_named_without_values(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = (
        *credentials.AMAZON,
        *credentials.GOOGLE,
        credentials.AZURE_ACCOUNT[0],
        credentials.AZURE_KEYS[0],
    )
    for name in names:
        monkeypatch.setenv(name, "hush-hush")
    found = all_of()
    assert {c["level"] for c in found if c["what"] in ("google", "amazon", "azure")} == {"ok"}
    assert all(name in json.dumps(found) for name in names)
    assert "hush" not in json.dumps(found)


def test_half_of_a_key_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "x")
    found = keys()
    assert found["amazon"].level == "warn" and "AWS_SECRET_ACCESS_KEY" in found["amazon"].detail
    assert found["azure"].todo == "export AZURE_STORAGE_ACCOUNT_KEY"


@pytest.mark.parametrize(
    ("kind", "said"),
    [("service_account", "a service account's key"), ("authorized_user", "a person's login")],
)
def test_a_file_with_googles_credentials_is_named_by_its_kind(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, kind: str, said: str
) -> None:
    text = json.dumps({"type": kind, "private_key": "hush", "refresh_token": "hush"})
    path = machine.file(".config/gcloud/application_default_credentials.json", text)
    assert keys()["google"] == Check("ok", "google", f"application-default login: {path} ({said})")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(machine.home / "nowhere.json"))
    assert keys()["google"].level == "warn" and "which is not there" in keys()["google"].detail
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(machine.file("key.json", "no json")))
    assert "which cannot be read" in keys()["google"].detail


def test_amazon_profiles_are_reported_as_not_enough(machine: Machine) -> None:
    machine.file(".aws/credentials", "[default]\naws_secret_access_key = hush\n")
    assert keys()["amazon"].level == "none" and keys("s3://b")["amazon"].level == "warn"
    assert "AWS_ACCESS_KEY_ID" in keys()["amazon"].todo


def test_credentials_of_the_stores_own_cloud_are_missed(machine: Machine) -> None:
    levels = {url: [check.level for check in keys(url).values()] for url in ("gs://b", "s3://b", "az://b")}
    assert levels == {
        "gs://b": ["warn", "none", "none"],
        "s3://b": ["none", "warn", "none"],
        "az://b": ["none", "none", "warn"],
    }


def test_a_clock_that_nobody_keeps_is_no_fault() -> None:
    assert clock.told(0, 12_000) == Check("ok", "clock", "set by a time service, right within 0.012 s")
    assert clock.told(clock.UNSYNCHRONISED, 0).level == "none"
    assert clock.told(-1, 0).level == "none"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_the_kernel_says_the_same_as_the_machines_own_tool() -> None:
    status, error = clock.kernel()
    assert status == -1 or error >= 0
    tool = shutil.which("adjtimex")
    if tool and status >= 0:
        printed = subprocess.run([tool, "--print"], capture_output=True, text=True).stdout
        assert f"status: {status}" in printed


NEEDS = [
    "click>=8.1",
    "pyyaml>=6.0",
    "obstore>=0.8; extra == 'buckets'",
    "google-auth[requests]>=2.30; extra == 'gce'",
    'pandas>=2.0; extra == "analysis"',
    "numpy>=1.26; extra == 'analysis'",
    "hostler[analysis]; extra == 'all'",
    "pytest>=8; extra == 'test'",
]
ABSENT = (
    "not installed, and needed only for what they name: analysis (df, plot, report, ui), gce (Google's VMs)"
)


def told(**there: str) -> list[Check]:
    return list(packages.told(NEEDS, lambda name: there.get(name.replace("-", "_"))))


def test_versions_and_missing_extras_are_listed() -> None:
    assert told(click="8.1.7", pyyaml="6.0.2", obstore="0.12.1", numpy="2.1.0", pytest="8.0") == [
        Check("ok", "packages", "click 8.1.7, pyyaml 6.0.2"),
        Check("ok", "buckets", "obstore 0.12.1"),
        Check("none", "extras", ABSENT, "pip install 'hostler[NAME]'"),
    ]


def test_missing_package_is_bad_and_missing_extra_a_warning() -> None:
    [base, google, _] = told(click="8.0.4", google_auth="2.9.0")
    assert base.level == "bad"
    assert base.detail == "pyyaml is not installed; click is 8.0.4, and 8.1 or newer is needed"
    assert google == Check(
        "warn",
        "gce",
        "google-auth is 2.9.0, and 2.30 or newer is needed",
        "pip install --upgrade 'hostler[gce]'",
    )


def test_described_extras_match_the_declared_ones() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    section = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    known = {line.split("=")[0].strip() for line in section.splitlines() if "= [" in line}
    assert known - {"all", "test", "frameworks", "gangs-test", "docs", "lint"} == set(packages.EXTRAS)
