"""Files between a laptop and real sshd machines: sync, ssh, notebook."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_world import FleetWorld, store_of
from sshhosts import Hosts, wait_until

pytestmark = [
    pytest.mark.real,
    pytest.mark.needs("sshd"),
    pytest.mark.needs("ssh"),
    pytest.mark.needs("rsync"),
]


@pytest.fixture
def lab(tmp_path: Path, hosts: Hosts) -> Iterator[FleetWorld]:
    made = FleetWorld(tmp_path / "world", hosts, store_of(tmp_path.name))
    yield made
    made.hang_up()
    made.close()


def far(hosts: Hosts, folder: str) -> dict[str, str]:
    root = hosts["n2"].root / folder.lstrip("/")
    return {str(p.relative_to(root)): p.read_text() for p in sorted(root.rglob("*")) if p.is_file()}


def test_sync_sends_changes_deletes_what_is_gone_and_spares_others(lab: FleetWorld) -> None:
    place = f"/tmp/{lab.folder.parent.parent.name}"
    names = ["a.py", "sub/b.py", "sub/with space 'and' \"quotes\".txt", "-option", "ü\nx"]
    for name in names:
        (lab.folder / name).parent.mkdir(exist_ok=True)
        (lab.folder / name).write_text(name)
    lab.write(".gitignore", "*.log\nout/\n")
    lab.write("train.log", "no")
    (lab.folder / "out").mkdir()
    lab.write("out/big", "no")
    first = lab.run("sync", "--once", "--to", place, "n2")
    assert first.code == 0, first.err
    sent = far(lab.hosts, place)
    assert {*names, "train.py", "steps.py", "hostler.yaml", ".gitignore"} == set(sent)
    assert sent["sub/with space 'and' \"quotes\".txt"].startswith("sub/with")

    assert "nothing changed" in lab.run("sync", "--once", "--to", place, "n2").out
    (lab.hosts["n2"].root / place[1:] / "sub" / "made there").write_text("kept")
    lab.write("a.py", "changed")
    (lab.folder / "sub" / "b.py").unlink()
    second = lab.run("sync", "--once", "--to", place, "n2")
    assert "1 sent, 1 deleted" in second.out, second
    now = far(lab.hosts, place)
    assert now["a.py"] == "changed" and "sub/b.py" not in now and now["sub/made there"] == "kept"


def test_what_was_changed_there_is_put_right(lab: FleetWorld) -> None:
    place = f"/tmp/{lab.folder.parent.parent.name}"
    lab.run("sync", "--once", "--to", place, "n2")
    (lab.hosts["n2"].root / place[1:] / "train.py").write_text("somebody's")
    (lab.hosts["n2"].root / place[1:] / "steps.py").unlink()
    assert "2 sent" in lab.run("sync", "--once", "--to", place, "n2").out
    assert far(lab.hosts, place)["train.py"] == (lab.folder / "train.py").read_text()


def test_file_that_becomes_a_folder_and_a_link_are_mirrored(lab: FleetWorld) -> None:
    place = f"/tmp/{lab.folder.parent.parent.name}"
    lab.write("thing", "a file")
    (lab.folder / "link").symlink_to("train.py")
    lab.run("sync", "--once", "--to", place, "n2")
    (lab.folder / "thing").unlink()
    (lab.folder / "thing").mkdir()
    lab.write("thing/inside", "now a folder")
    answer = lab.run("sync", "--once", "--to", place, "n2")
    assert answer.code == 0, answer.err
    root = lab.hosts["n2"].root / place[1:]
    assert (root / "thing/inside").read_text() == "now a folder" and os.readlink(root / "link") == "train.py"


def test_a_folder_that_holds_other_files_is_refused(lab: FleetWorld) -> None:
    (lab.hosts["n2"].root / "tmp/theirs").mkdir(exist_ok=True)
    (lab.hosts["n2"].root / "tmp/theirs/precious").write_text("x")
    answer = lab.run("sync", "--once", "--to", "/tmp/theirs", "n2")
    assert answer.code == 2 and "did not put there" in answer.err
    assert lab.run("sync", "--once", "--force", "--to", "/tmp/theirs", "n2").code == 0
    assert "precious" in far(lab.hosts, "/tmp/theirs")


def test_many_files_go_as_one_stream(lab: FleetWorld) -> None:
    for n in range(300):
        lab.write(f"m{n}.py", f"{n}" * 50)
    place = f"/tmp/{lab.folder.parent.parent.name}"
    assert lab.run("sync", "--once", "--to", place, "n2").code == 0
    assert far(lab.hosts, place)["m299.py"] == "299" * 50


def test_saved_file_arrives_in_a_moment_while_sync_watches(lab: FleetWorld) -> None:
    place = f"/tmp/{lab.folder.parent.parent.name}"
    watching = lab.start("sync", "--to", place, "n2")
    try:
        path = lab.hosts["n2"].root / place[1:] / "train.py"
        wait_until(path.exists)
        time.sleep(1)
        for n in range(3):
            lab.write("train.py", f"# edited {n}")
            wait_until(lambda n=n: path.read_text() == f"# edited {n}", 60)
        (lab.folder / "train.py").unlink()
        wait_until(lambda: not path.exists(), 60)
    finally:
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=60)
    assert watching.returncode == 0, err
    lab.quiet()


def test_ssh_runs_a_command_whose_words_arrive_as_they_are(lab: FleetWorld) -> None:
    answer = lab.run("ssh", "n2", "printf", "%s|", "a b", "c'd", "$HOME", "; echo x")
    assert answer.out == "a b|c'd|$HOME|; echo x|", answer
    assert lab.run("ssh", "n2", "hostname | tr n N").out == "N2\n"
    assert lab.run("ssh", "n2", "exit 7").code == 7
    assert "no host was named" in lab.run("ssh").err
    assert "not a port" in lab.run("ssh", "-L", "x", "n2", "true").err


def test_ssh_to_a_fleet_runs_the_words_after_dashes(lab: FleetWorld) -> None:
    fleets = "single: {backend: ssh, hosts: [n2]}, pair: {backend: ssh, hosts: [n2, n3]}"
    text = (lab.folder / "hostler.yaml").read_text()
    lab.write("hostler.yaml", text.replace("fleets: {", f"fleets: {{{fleets}, "))
    assert lab.run("ssh", "single", "--", "hostname").out == "n2\n"
    assert lab.run("ssh", "single", "--", "sh", "-c", "exit 7").code == 7
    assert lab.run("ssh", "single", "--", "echo", "--", "x").out == "-- x\n"
    refused = lab.run("ssh", "pair", "--", "hostname")
    assert refused.code == 2 and refused.err == (
        "hostler: pair has 2 machines\n  → name one of them: n2, n3\n"
    )


def test_forwarded_port_of_the_host_is_open_to_nobody_else(lab: FleetWorld) -> None:
    server = "python3 -m http.server --bind 127.0.0.1 8123"
    shell = lab.start("ssh", "-L", "8124:8123", "n2", server)
    try:
        look = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8124').status)"
        python = ["/usr/bin/python3", "-c", look]
        wait_until(
            lambda: subprocess.run(lab.hosts.on_laptop(python), capture_output=True).stdout == b"200\n", 15
        )
        others = look.replace("127.0.0.1", "10.77.0.1")
        refused = subprocess.run(lab.hosts.on_laptop(["/usr/bin/python3", "-c", others]), capture_output=True)
        assert b"refused" in refused.stderr
    finally:
        shell.kill()
        shell.wait()
        lab.hosts["n2"].kill("http.server")


JUPYTER = """#!/usr/bin/python3
import http.server, os, sys
port = next(int(w.partition("=")[2]) for w in sys.argv if w.startswith("--port="))
assert "--ip=127.0.0.1" in sys.argv and not any(os.environ["JUPYTER_TOKEN"] in w for w in sys.argv)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ok = self.path.endswith("token=" + os.environ["JUPYTER_TOKEN"])
        self.send_response(200 if ok else 403)
        self.end_headers()
        self.wfile.write(os.getcwd().encode())

http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def test_a_notebook_is_forwarded_and_ends_with_its_terminal(lab: FleetWorld) -> None:
    """A stand-in for Jupyter, which takes a minute to install; how it is called is what is tested."""
    tools = lab.hosts["n2"].home / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "jupyter").write_text(JUPYTER)
    (tools / "jupyter").chmod(0o755)
    (lab.hosts["n2"].home / ".bashrc").write_text("export PATH=/root/tools:$PATH\n")
    running = lab.start("notebook", "n2")
    try:
        assert running.stdout is not None
        url = running.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), running.communicate(timeout=60)
        look = f"import urllib.request as u; print(u.urlopen({url!r}).read().decode())"
        done = subprocess.run(
            lab.hosts.on_laptop(["/usr/bin/python3", "-c", look]), capture_output=True, text=True
        )
        assert done.stdout.strip() == "/root/hostler/walk", done.stderr
        assert (lab.hosts["n2"].home / "hostler/walk/train.py").exists()
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert running.returncode == 0
    lab.quiet()


def test_a_host_without_jupyter_is_one_clear_line(lab: FleetWorld) -> None:
    answer = lab.run("notebook", "--no-sync", "n3")
    assert answer.code == 1 and "Jupyter is not installed there" in answer.err and "pip install" in answer.err
    lab.quiet()
