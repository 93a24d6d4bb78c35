from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.errors import MachineError
from hostler.remote import connection
from hostler.remote.connection import Connection
from hostler.remote.target import SshTarget


@pytest.fixture(autouse=True)
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An ssh that says what is in this file when it is asked for its configuration."""
    said = tmp_path / "said"
    said.write_text("controlpath none\n")
    tool = tmp_path / "bin" / "ssh"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\nexec /bin/cat {shlex.quote(str(said))}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    connection.has_own_socket.cache_clear()
    connection._sockets.cache_clear()
    yield said
    connection.has_own_socket.cache_clear()
    connection._sockets.cache_clear()


def test_words_arrive_as_they_are_whatever_is_in_them() -> None:
    words = ["echo", "a b", "c'd", '"', "$HOME", "; rm -rf x", "new\nline", ""]
    command = Connection(SshTarget("n1", "me")).command(words)
    assert command[-3:-1] == ["--", "n1"] and shlex.split(command[-1]) == words


@pytest.mark.parametrize("shared", [True, False])
def test_it_never_asks_and_never_skips_a_host_key(shared: bool) -> None:
    text = " ".join(Connection(SshTarget("n1"), shared).options)
    assert "BatchMode=yes" in text and "StrictHostKeyChecking" not in text and "KnownHosts" not in text
    assert ("ControlMaster=auto" in text) is shared


def test_users_own_shared_connection_is_used(said: Path) -> None:
    said.write_text("controlmaster auto\ncontrolpath /home/me/.ssh/sock-n1\n")
    assert "ControlPath" not in " ".join(Connection(SshTarget("n1")).options)
    assert "ControlPath" not in " ".join(Connection(SshTarget("n1"), shared=False).options)


def test_sockets_are_private_and_short_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(connection._sockets()) + 41 <= connection.LONGEST_SOCKET
    connection._sockets.cache_clear()
    monkeypatch.setattr(connection, "LONGEST_SOCKET", 10_000)
    folder = Path(connection._sockets())
    assert folder.is_relative_to(tmp_path) and folder.stat().st_mode & 0o077 == 0
    connection._sockets.cache_clear()
    folder.chmod(0o777)
    with pytest.raises(MachineError, match="other users can write to"):
        connection._sockets()


def test_sockets_below_a_folder_that_others_write_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LONGEST_SOCKET", 10_000)
    folder = Path(connection._sockets())
    connection._sockets.cache_clear()
    folder.parent.chmod(0o777)
    with pytest.raises(MachineError, match=f"other users can write to {folder.parent}"):
        connection._sockets()


def test_no_ssh_program_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nothing")
    with pytest.raises(MachineError, match="ssh is not installed here"):
        Connection(SshTarget("n9")).command(["true"])
