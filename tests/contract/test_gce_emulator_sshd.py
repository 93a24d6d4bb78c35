"""The sshd of an emulated machine: who gets in, by the metadata, and by which host key it is known."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import servers
from gce_api import ZONE, Api, Refused
from hostler.emulators.gce import GceEmulator, emulator
from hostler.emulators.gce.machine.guest_agent import accounts, config
from hostler.errors import MachineError
from sshhosts import keygen, wait_until

pytestmark = [pytest.mark.needs("sshd"), pytest.mark.needs("ssh")]
PATH = f"/zones/{ZONE}/instances/one"


@pytest.fixture
def gce() -> Iterator[GceEmulator]:
    if os.geteuid() != 0:
        servers.missing("a machine with an sshd needs root")
    with emulator(scale=60, sshd=True) as started:
        yield started


class Person:
    """A key of their own, and ssh with it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._key, self.name = folder / name, name
        keygen(self._key)

    @property
    def line(self) -> str:
        """The line of the metadata that lets them in."""
        return f"{self.name}:{self._key.with_suffix('.pub').read_text().strip()}"

    def ssh(self, host: str, key: str, command: str, name: str = "") -> subprocess.CompletedProcess[str]:
        known = self._key.with_suffix(".known")
        known.write_text(f"vm {key}\n")
        options = ["BatchMode=yes", "IdentitiesOnly=yes", f"UserKnownHostsFile={known}", "HostKeyAlias=vm"]
        words = ["ssh", "-F", "none", "-i", str(self._key), "-l", name or self.name]
        words += [word for one in options for word in ("-o", one)]
        return subprocess.run([*words, host, command], capture_output=True, text=True, timeout=60)


@pytest.fixture
def ada(tmp_path: Path) -> Person:
    return Person(tmp_path, "ada")


@pytest.fixture
def bob(tmp_path: Path) -> Person:
    return Person(tmp_path, "bob")


def insert(api: Api, keys: str, name: str = "one") -> None:
    metadata = {"enable-guest-attributes": "TRUE", "ssh-keys": keys}
    api.insert(name, spot=False, metadata=metadata)


def host_key(api: Api, name: str = "one") -> str:
    """The key that a machine has told by its guest attributes."""
    path = f"/zones/{ZONE}/instances/{name}/getGuestAttributes"
    found = list[str]()

    def told() -> bool:
        try:
            items = api.get(path, queryPath="hostkeys/")["queryValue"]["items"]
        except Refused:
            return False
        found[:] = [f"{one['key']} {one['value']}" for one in items]
        return True

    wait_until(told)
    [key] = found
    return key


def addresses(api: Api, name: str = "one") -> tuple[str, str]:
    """Inside and outside."""
    [interface] = api.get(f"/zones/{ZONE}/instances/{name}")["networkInterfaces"]
    return interface["networkIP"], interface["accessConfigs"][0]["natIP"]


def test_only_keys_of_the_metadata_get_in(gce: GceEmulator, ada: Person, bob: Person) -> None:
    api = Api(gce)
    insert(api, ada.line)
    key, (inside, outside) = host_key(api), addresses(api)
    for host in (inside, outside):
        done = ada.ssh(host, key, "whoami; echo $HOSTLER_HOST; cat ~/.ssh/authorized_keys | wc -l; pwd")
        assert done.stdout.split()[:3] == ["ada", "one", "2"], done.stderr
        assert done.stdout.strip().endswith("/home/ada")
    for stranger, name in ((bob, "bob"), (bob, "ada"), (bob, "root"), (ada, "root")):
        done = stranger.ssh(outside, key, "true", name)
        assert done.returncode == 255 and "Permission denied" in done.stderr
    assert "ada:" not in Path("/etc/passwd").read_text()


def test_changed_metadata_opens_it_to_others(gce: GceEmulator, ada: Person, bob: Person) -> None:
    api = Api(gce)
    insert(api, ada.line)
    key, (_, host) = host_key(api), addresses(api)
    assert ada.ssh(host, key, "true").returncode == 0
    mark = api.get(PATH)["metadata"]["fingerprint"]
    api.do(
        "POST",
        f"{PATH}/setMetadata",
        {"items": [{"key": "ssh-keys", "value": bob.line}], "fingerprint": mark},
    )
    wait_until(lambda: bob.ssh(host, key, "true").returncode == 0)
    assert "Permission denied" in ada.ssh(host, key, "true").stderr


def test_host_key_stays_with_a_machine_and_is_its_own(gce: GceEmulator, ada: Person) -> None:
    api = Api(gce)
    insert(api, ada.line)
    insert(api, ada.line, "two")
    key, other, (_, host) = host_key(api), host_key(api, "two"), addresses(api)
    assert key != other
    refused = ada.ssh(host, other, "true")
    assert refused.returncode == 255 and "Host key verification failed" in refused.stderr
    api.do("POST", f"{PATH}/reset")
    wait_until(lambda: ada.ssh(host, key, "true").returncode == 0)


def test_nobody_listens_once_a_machine_is_gone(gce: GceEmulator, ada: Person) -> None:
    api = Api(gce)
    insert(api, ada.line)
    key, (_, host) = host_key(api), addresses(api)
    assert ada.ssh(host, key, "true").returncode == 0
    api.do("DELETE", PATH)
    assert "refused" in ada.ssh(host, key, "true").stderr


def test_lines_of_the_metadata_are_accounts_with_keys() -> None:
    lines = "ada:ssh-ed25519 AAA ada\n\nbob:ssh-rsa BBB\nada:ssh-ed25519 CCC\n../x:ssh-rsa D\nnobody:\nno key"
    found = accounts({"ssh-keys": lines})
    assert found == {"ada": ["ssh-ed25519 AAA ada", "ssh-ed25519 CCC"], "bob": ["ssh-rsa BBB"]}
    assert accounts({"ssh-keys": lines, "enable-oslogin": "TRUE"}) == accounts({}) == {}


def test_sessions_have_the_variables_of_the_machine() -> None:
    text = config(Path("/vm"), ["127.78.0.2", "127.77.0.2"], {"HOME": "/root", "A": 'x "y" \\z', "B": "1"})
    assert text.startswith("ListenAddress 127.78.0.2:22\nListenAddress 127.77.0.2:22\n")
    assert text.endswith('SetEnv A="x \\"y\\" \\\\z" B="1"\n')


def test_machine_with_an_sshd_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MachineError, match="need root"):
        emulator(sshd=True)
