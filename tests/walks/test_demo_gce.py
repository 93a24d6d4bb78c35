"""`hostler demo gce`, whole: the cloud side as a person sees it first, with no network at all."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from test_demo import environ

from hostler import proctable

OFFLINE = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
    "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json",
    "HOSTLER_STORE": "/nowhere",  # a person's own
}


def test_cloud_demo_loses_a_vm_no_run_and_leaves_nothing(tmp_path: Path) -> None:
    here = tmp_path / "a folder; echo x"
    here.mkdir()
    given = {**environ(tmp_path), **OFFLINE}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "hostler", "demo", "gce"],
        cwd=here,
        env=given,
        capture_output=True,
        text=True,
        timeout=200,
    )
    print(f"the demo took {time.monotonic() - began:.0f} seconds")
    assert done.returncode == 0, done.stdout + done.stderr
    taken = re.search(r"^>>> Google takes (hostler-\S+) away, in the middle of (demo/\d)", done.stdout, re.M)
    assert taken and f">>> its group makes {taken[1]} again" in done.stdout
    assert re.search(rf"^>>> {taken[2]}: attempt 2 goes on from checkpoint 1-\d", done.stdout, re.M)
    assert done.stdout.count(": done\n") == 4 and "All 4 runs are done" in done.stdout
    assert "0 VMs, disks, groups and templates." in done.stdout
    mark = str(tmp_path / "tmp").encode()
    assert not [pid for pid in proctable.table() if mark in _environment(pid)]
    assert not list((tmp_path / "tmp").glob("hostler-gce-*"))


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def test_without_the_driver_of_buckets_nothing_begins(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden" / "obstore.py"
    hidden.parent.mkdir()
    hidden.write_text('raise ModuleNotFoundError("as where it is not installed", name="obstore")\n')
    given = environ(tmp_path)
    given["PYTHONPATH"] = f"{hidden.parent}:{given['PYTHONPATH']}"
    here = tmp_path / "here"
    here.mkdir()
    words = [sys.executable, "-m", "hostler", "demo", "gce"]
    done = subprocess.run(words, cwd=here, env=given, capture_output=True, text=True, timeout=200)
    assert done.returncode == 1 and done.stdout == "" and list(here.iterdir()) == []
    assert done.stderr.splitlines() == [
        "hostler: gs://hostler-demo/demo needs the package obstore",
        "  → pip install 'hostler[buckets]', which is obstore",
    ]
