"""What hostler says about folders on real mounts, a FUSE file system among them; and the names it knows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import hostler
import servers
from hostler.store import registry

PROGRAM = Path(__file__).parent / "mounts.py"


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[str, bool]]:
    if os.geteuid() or not shutil.which("unshare") or not os.path.exists("/dev/fuse"):
        servers.missing("mounting in a namespace needs root, unshare and /dev/fuse")
    with tempfile.TemporaryDirectory() as folder:
        command = ["unshare", "--mount", sys.executable, str(PROGRAM), folder]
        path = {"PYTHONPATH": str(Path(hostler.__file__).parent.parent)}
        done = subprocess.run(command, env={**os.environ, **path}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return {name: (kind, network) for name, (kind, network) in json.loads(done.stdout).items()}


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("mit Leerzeichen", ("tmpfs", False)),
        ("каталог ö", ("tmpfs", False)),
        ("back\\slash, comma", ("tmpfs", False)),
        ("bound", ("tmpfs", False)),
        ("mit Leerzeichen/store", ("tmpfs", False)),
        ("hidden/below", ("tmpfs", False)),
        ("fuse", ("fuse", True)),
        ("fuse im Übrigen", ("fuse.sshfs", True)),
        ("scratch", ("fuse.sshfs", True)),
        ("scratch of scratch", ("fuse.sshfs", True)),
        ("scratch/of me/store", ("fuse.sshfs", True)),
        ("dangling", ("fuse", True)),
        ("over/merged", ("tmpfs", False)),
        ("over/merged/store", ("tmpfs", False)),
    ],
)
def test_file_system_of_a_folder_is_that_of_its_mount(
    found: dict[str, tuple[str, bool]], folder: str, expected: tuple[str, bool]
) -> None:
    assert found[folder] == expected
    assert not found["plain"][1]


NETWORKS = "nfs nfs4 lustre gpfs beegfs ceph wekafs glusterfs cifs 9p virtiofs fuse.ceph-fuse fuse.weed"


@pytest.mark.parametrize("kind", NETWORKS.split())
def test_network_file_systems_are_known_by_name(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "file_system", lambda folder: kind)
    assert registry.is_network(Path("/scratch"))


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "fuseblk", ""])
def test_local_file_systems_are_not_taken_for_networks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "file_system", lambda folder: kind)
    assert not registry.is_network(Path("/home"))
