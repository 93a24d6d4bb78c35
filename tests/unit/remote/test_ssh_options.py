"""Neither keys nor screen are lent to another machine, whatever ~/.ssh/config says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hostler
from hostler.cli.machines.notebook import ALONE
from hostler.cli.machines.ssh import ssh_command
from hostler.remote.connection import CLOSED, ssh_options
from hostler.remote.target import SshTarget

SSH = '#!/bin/sh\nfor w; do [ "$w" = -- ] && break; printf "%s " "$w"; done >> {0}\necho >> {0}\nexit 255\n'
PROJECT = "name: p\nstore: ssh://n1/~/store\nfleets: {lab: {backend: ssh, hosts: [n1]}}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose ssh only writes down how it was called."""
    folder = tmp_path / "project"
    (tmp_path / "bin").mkdir()
    folder.mkdir()
    (folder / "hostler.yaml").write_text(PROJECT)
    tool = tmp_path / "bin" / "ssh"
    tool.write_text(SSH.format(shlex.quote(str(tmp_path / "called"))))
    tool.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "words", ["status", "ssh n1 true", "ssh -L 6006 n1", "sync n1", "notebook --no-sync n1", "up lab"]
)
def test_every_ssh_call_of_a_verb_lends_nothing(project: Path, tmp_path: Path, words: str) -> None:
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    alone = {"PATH": path, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "HOSTLER_RETRY": "0.1"}
    subprocess.run(
        [sys.executable, "-m", "hostler", *words.split()],
        cwd=project,
        env=alone,
        capture_output=True,
        timeout=100,
    )
    calls = (tmp_path / "called").read_text().splitlines()
    assert calls
    for call in calls:
        assert all(f"-o {pair} " in call for pair in CLOSED), call


def test_tunnel_of_a_notebook_lends_nothing() -> None:
    words = ssh_command(SshTarget("n1"), ("cat",), ("1:2",), ALONE)
    options = words[: words.index("--")]
    assert {*CLOSED, *ALONE, "ExitOnForwardFailure=yes"} <= set(options)


def test_ssh_is_called_in_no_other_way() -> None:
    """Each command line of ssh in the sources is made of these options; a plan only shows one."""
    root = Path(hostler.__file__).parent
    lines = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r"""[\[(]["']ssh["'],""", line)
    ]
    others = [line for line in lines if "ssh_options(" not in line and "connection.options]" not in line]
    assert sorted(line.partition(":")[0] for line in others) == [
        "backends/ssh/backend.py",
        "remote/connection.py",
    ]
    assert any('["ssh", *self.options, "--"' in line for line in others)


@pytest.mark.skipif(not shutil.which("ssh"), reason="needs the OpenSSH client")
def test_options_win_over_the_users_configuration(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host *\n  ForwardAgent yes\n  ForwardX11 yes\n")
    words = ["ssh", "-F", str(config), "-G", *ssh_options(SshTarget("n1")), "--", "n1"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"forwardagent no", "forwardx11 no"} <= set(said)
