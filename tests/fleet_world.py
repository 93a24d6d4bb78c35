"""A laptop with a project and a fleet of real machines: commands are typed there, runs are elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import servers
from cli_world import FAST, World
from hostler.records.rows import rows
from hostler.store import Store, open_store
from laptop import outcomes_of, send_to, wait_for
from sshhosts import HEAD, Hosts, wait_until

STEPS = """
import json, os, sys, time
from pathlib import Path

params = json.loads(Path(os.environ["HOSTLER_PARAMS"]).read_text())
path = Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "step")
step = int(path.read_text()) if path.exists() else 0
while step < int(params.get("steps", 5)):
    while step == 3 and Path("/root/hold").exists():
        time.sleep(0.02)
    print(json.dumps({"step": step, "value": step * float(params.get("lr", 1))}), flush=True)
    time.sleep(float(params.get("nap", 0.02)))
    step += 1
    fresh = path.with_suffix(".new")
    fresh.write_text(str(step))
    fresh.rename(path)
Path(os.environ["HOSTLER_OUTPUT_DIR"], "where.txt").write_text(os.uname().nodename)
"""
QUICK = {
    **FAST,
    "HOSTLER_BEAT": "0.5",
    "HOSTLER_LEASE": "4",
    "HOSTLER_RETRY": "2",
    "HOSTLER_CONNECT": "3",
    "HOSTLER_GRACE": "5",
    "HOSTLER_WAIT_MAX": "0.5",
    "HOSTLER_SETTLE": "0.1",
}


S3 = f"http://{HEAD}:5000"
HOME = "/root"  # of a host, as its processes see it


@contextmanager
def bucket(hosts: Hosts, folder: Path) -> Iterator[dict[str, str]]:
    """A SeaweedFS server on the laptop that the hosts reach; the variables by which it is found."""
    variables = {**servers.CREDENTIALS, "AWS_ENDPOINT_URL": S3}
    place = folder / "buckets"
    place.mkdir()
    words = servers.seaweed_command(place, HEAD, range(5000, 5008))
    with open(folder / "bucket.log", "wb") as log:
        server = subprocess.Popen(hosts.on_laptop(words), stdout=log, stderr=log)
    try:
        make = [sys.executable, str(Path(__file__).parent / "laptop.py"), "bucket", S3, servers.BUCKET]
        end = time.monotonic() + 30
        while subprocess.run(
            hosts.on_laptop(make), env={**os.environ, **variables}, capture_output=True
        ).returncode:
            assert time.monotonic() < end, (folder / "bucket.log").read_text()
        yield variables
    finally:
        server.kill()
        server.wait()


def store_of(name: str) -> str:
    """A store in the home of the first host, which this process sees as well."""
    return f"ssh://n1{HOME}/{name}"


class FleetWorld(World):
    """`run` and `start` type a command on the laptop of these hosts.

    A store in a host's home is filled and read from here: by ssh it would be a command for each look."""

    def __init__(self, root: Path, hosts: Hosts, store: str, **variables: str) -> None:
        super().__init__(root)
        self.hosts, self.url = hosts, store
        home, found, name = store.partition(f"{HOME}/")
        self._near = hosts[home.removeprefix("ssh://")].home / name if found else None
        state = str(self._private / "state")  # where it is noted for which hosts somebody waits
        self.env |= {**QUICK, "TMPDIR": str(hosts.short), "XDG_STATE_HOME": state, **variables}
        self.write("steps.py", STEPS)
        self.project()

    def project(self, *, hosts: tuple[str, ...] = ("n1", "n2", "n3", "n4"), **fleet: Any) -> None:
        more = "".join(f", {key}: {value}" for key, value in fleet.items())
        lines = [
            "name: walk",
            "command: python steps.py",
            "style: json",
            f"store: {self.url}",
            "fleet: lab",
            "checkpoint: {every: 0.3s}",
            f"fleets: {{lab: {{backend: ssh, hosts: [{', '.join(hosts)}]{more}}}}}",
        ]
        self.write("hostler.yaml", "\n".join(lines) + "\n")

    def _command(self, words: tuple[str, ...]) -> list[str]:
        return self.hosts.on_laptop(super()._command(words))

    def submit(self, count: int, *, steps: int, nap: float) -> None:
        """Runs that wait; `up` starts workers for them."""
        if not self._near:
            self.script("send", self.url, str(count), str(steps), str(nap))
            return
        with pytest.MonkeyPatch.context() as patch:
            for name in (name for name in self.env if name.startswith("HOSTLER_")):
                patch.setenv(name, self.env[name])
            send_to(self.near(), self.folder / "hostler.yaml", count, steps, nap)

    def hold(self, *names: str) -> None:
        """Runs on these hosts take a few steps and wait there, until they are let go."""
        for name in names:
            (self.hosts[name].home / "hold").touch()

    def let_go(self) -> None:
        for host in self.hosts.every:
            (host.home / "hold").unlink(missing_ok=True)

    def outcomes(self) -> list[dict[str, Any]]:
        """What the store alone tells of every run: each must have ended exactly once."""
        said = json.dumps(outcomes_of(self.near())) if self._near else self.script("outcomes", self.url)
        found: list[dict[str, Any]] = json.loads(said)
        return found

    def near(self) -> Store:
        """The store as its own host sees it."""
        assert self._near
        return open_store(str(self._near))

    def python(self, code: str, *words: str) -> Any:
        """What a few lines of Python print on the laptop, as JSON."""
        return json.loads(self._python("-c", code, *words))

    def program(self, *words: str) -> str:
        """What a program of the project prints on the laptop."""
        return self._python(*words)

    def script(self, *words: str) -> str:
        return self._python(str(Path(__file__).parent / "laptop.py"), *words)

    def _python(self, *words: str) -> str:
        command = self.hosts.on_laptop([sys.executable, *words])
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def states(self) -> dict[str, str]:
        if self._near:
            return {row.id: row.state for row in rows(self.near())} if self._near.exists() else {}
        answer = self.run("status", "--json")
        assert answer.code == 0, answer.err
        return {row["id"]: row["state"] for row in answer.json}

    def done(self, count: int, seconds: float = 150) -> None:
        self.until("done", count, seconds)

    def until(self, state: str, count: int, seconds: float = 150) -> None:
        """Waits for so many runs in that state."""
        if self._near:
            wait_for(self.near(), state, count, seconds)
        else:
            self.script("wait", self.url, state, str(count), str(seconds))

    def quiet(self, seconds: float = 60) -> None:
        """No process of hostler is left on any host."""
        self.hang_up()
        wait_until(lambda: not any(host.pids() for host in self.hosts.every), seconds)

    def hang_up(self) -> None:
        self.hosts.hang_up()
