"""Hand work on a VM, as it is typed: ssh, sync and notebook, by the user's own ssh to a real sshd.

The VMs are the emulator's. Its guest agent publishes the host keys and lets in the key that hostler put into
the metadata, as Google's does.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import servers
from gce_world import CloudWorld, cloud, eventually
from hostler import proctable
from hostler.emulators.gce.machine.leaving import folder_of
from hostler.remote import keypair

pytestmark = [pytest.mark.needs("sshd"), pytest.mark.needs("ssh"), pytest.mark.needs("rsync")]
VM = "hostler-cifar-burst-keep"
JUPYTER = """#!/usr/bin/env python3
import http.server, os, sys, urllib.parse
port = next(int(w.partition("=")[2]) for w in sys.argv if w.startswith("--port="))
assert "--ip=127.0.0.1" in sys.argv and not any(os.environ["JUPYTER_TOKEN"] in w for w in sys.argv)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        given = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query).get("token")
        self.send_response(200 if given == [os.environ["JUPYTER_TOKEN"]] else 403)
        self.end_headers()
        self.wfile.write(os.getcwd().encode())

http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CloudWorld]:
    if os.geteuid() != 0:
        servers.missing("a VM with an sshd needs root")
    with cloud(tmp_path, scale=60, sshd=True) as made:
        made.project(workers=1, zones=["us-central1-a"])
        yield made


def keep(world: CloudWorld, idle: str = "3600s") -> None:
    """A VM for hand work that has told its host keys."""
    done = world.run("up", "burst", "--keep", "--idle", idle, "-y")
    assert done.code == 0, done.err
    [vm] = world.gce.machines()
    eventually(lambda: any(name.startswith("hostkeys/") for name in vm.board.guest_attributes), 60)


def home(world: CloudWorld) -> Path:
    """Home of the account for hand work, as seen from here."""
    [vm] = world.gce.machines()
    return folder_of(world.gce._world, vm) / "home" / "hostler"


def test_ssh_runs_commands_on_a_vm_until_it_is_down(world: CloudWorld, tmp_path: Path) -> None:
    keep(world)
    done = world.run("ssh", "burst", "--", "pwd; whoami")
    assert done.code == 0 and done.out.split() == [str(home(world)), "hostler"], done.err
    done = world.run("ssh", f"burst/{VM}", "--", "sh", "-c", "echo $HOSTLER_HOST; exit 7")
    assert (done.code, done.out) == (7, f"{VM}\n"), done.err
    keypair.public_key(tmp_path / "another" / "keys" / "cifar")
    refused = world.run("ssh", "burst", "--", "pwd", HOSTLER_CACHE=str(tmp_path / "another"))
    assert refused.code == 255 and "Permission denied" in refused.err, "the key of another user"
    ended = world.start("ssh", "burst", "--", "echo in; sleep 1000")
    assert ended.stdout is not None and ended.stdout.readline() == "in\n"
    ended.terminate()
    ended.communicate(timeout=60)  # whoever kills the command has no connection left
    pids = world.gce.pids(VM)
    assert any("sshd" in words(pid) for pid in pids)
    held = world.start("ssh", "burst", "--", "echo in; sleep 1000")
    assert held.stdout is not None and held.stdout.readline() == "in\n"
    assert world.run("down", "burst").code == 0
    assert held.wait(60) == 255 and not [pid for pid in pids if proctable.start_of(pid)]
    held.communicate()
    gone = world.run("ssh", "burst", "--", "pwd")
    assert gone.code == 1 and "no VM of fleet burst runs" in gone.err


def test_ssh_reaches_a_vm_at_work_by_name(world: CloudWorld) -> None:
    world.sweep_file(1, hold=world.hold())
    world.launched("grid.yaml", timeout=240)
    eventually(lambda: bool(world.gce.names()), 60)
    [name] = world.gce.names()
    eventually(lambda: world.run("ssh", f"burst/{name}", "--", "echo $HOSTLER_HOST").out == f"{name}\n", 60)
    world.let_go()
    world.until_gone()


def test_sync_brings_a_file_and_its_changes(world: CloudWorld) -> None:
    keep(world)
    world.write("note.txt", "first")
    done = world.run("sync", "burst", "--once")
    far = home(world) / "hostler" / "cifar"
    assert done.code == 0 and (far / "note.txt").read_text() == "first", done.err
    assert (far / "train.py").read_text() == (world.folder / "train.py").read_text()
    world.write("note.txt", "a second text")
    done = world.run("sync", "burst", "--once")
    assert "1 sent, 0 deleted" in done.out and (far / "note.txt").read_text() == "a second text", done.err
    with typed(world, "sync", "burst") as watching:
        assert watching.stderr is not None and "watching" in watching.stderr.readline()
        world.write("note.txt", "a third")
        eventually(lambda: (far / "note.txt").read_text() == "a third", 60)
        (world.folder / "note.txt").unlink()
        eventually(lambda: not (far / "note.txt").exists(), 60)


def test_notebook_is_reached_by_its_token_and_ends(world: CloudWorld) -> None:
    """A stand-in for Jupyter, which takes a minute to install: it serves HTTP to whoever has the token."""
    keep(world)
    program = home(world).parent.parent / "bin" / "jupyter"
    program.write_text(JUPYTER)
    program.chmod(0o755)
    with typed(world, "notebook", "burst") as running:
        assert running.stdout is not None
        url = running.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:") and "token=" in url, running.communicate(timeout=60)
        assert urllib.request.urlopen(url, timeout=60).read().decode() == str(home(world) / "hostler/cifar")
        assert (home(world) / "hostler/cifar/train.py").exists()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(url[:-1], timeout=60)
        here, there = int(url.split(":")[2].partition("/")[0]), far_port(world)
        [vm] = world.gce.machines()
        assert is_open("127.0.0.1", here)
        assert not is_open("127.0.0.2", here) and not any(is_open(one, there) for one in vm.addresses)
    assert not jupyters(world) and not is_open("127.0.0.1", here) and not is_open("127.0.0.1", there)
    assert not world.processes(holding=f"127.0.0.1:{here}")
    assert world.run("down", "burst").code == 0
    eventually(lambda: not world.processes(holding="ssh"), 60)  # the connection that waits for a next command


@pytest.mark.soak
def test_an_open_connection_keeps_a_vm_from_being_idle(world: CloudWorld) -> None:
    world.env["HOSTLER_BUSY_LOAD"] = "1000"  # of this whole machine, which is not what is meant here
    keep(world, idle="15s")
    held = world.start("ssh", "burst", "--", "echo in; sleep 1000")
    assert held.stdout is not None and held.stdout.readline() == "in\n"
    time.sleep(25)
    assert world.gce.names() == [VM]
    held.terminate()
    held.communicate(timeout=60)
    world.until_gone(180)


@contextmanager
def typed(world: CloudWorld, *given: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs until Ctrl-C, which it takes well."""
    running = world.start(*given)
    try:
        yield running
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert running.returncode == 0


def far_port(world: CloudWorld) -> int:
    [pid] = jupyters(world)
    return next(int(word.partition("=")[2]) for word in words(pid).split() if word.startswith("--port="))


def jupyters(world: CloudWorld) -> list[int]:
    return [pid for pid in world.gce.pids(VM) if "/bin/jupyter" in words(pid)]


def words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:  # it has ended meanwhile
        return ""


def is_open(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0
