"""A project folder with a store of its own, and the real command line over it, with short times."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import known_python
from hostler import proctable
from hostler.cli.terminal import named_rows, output
from hostler.records.rows import rows
from hostler.records.run import resolve
from hostler.store import open_store
from hostler.store.base import Store

SOURCE = Path(__file__).parent.parent / "src"
TIMES = {
    "BEAT": "0.2",
    "LEASE": "3",
    "FLUSH": "0.1",
    "SETTLE": "0.2",
    "POLL": "0.05",
    "GRACE": "3",
    "WAIT_MIN": "0.05",
    "WAIT_MAX": "0.2",
    "RETRY": "3",
}

PRINTS = "import sys\nprint('args', *sys.argv[1:])\n"
# Counts in its checkpoint folder; saves and leaves when it is told to.
COUNTS = """\
import os, pathlib, signal, sys, time
place = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "n")
n = int(place.read_text()) if place.exists() else 0
pathlib.Path(os.environ["HOSTLER_OUTPUT_DIR"], "out.txt").write_text("the output")
print("begins at", n, flush=True)
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
while n < int(sys.argv[1]) and not told:
    time.sleep(0.05)
    n += 1
place.write_text(str(n))
sys.exit(75 if told else 0)
"""
# Neither hears nor saves.
DEAF = """\
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""


@dataclass
class World:
    folder: Path
    env: dict[str, str]
    children: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return open_store(str(self.folder / ".hostler"))

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def cli(
        self, *words: str, cwd: Path | None = None, say: str = "", limit: float = 120, **env: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "hostler", *words],
            cwd=cwd or self.folder,
            env={**self.env, **env},
            input=say,
            capture_output=True,
            text=True,
            timeout=limit,
        )

    def ok(self, *words: str, **more: Any) -> str:
        """Its output, if it exits 0."""
        done = self.cli(*words, **more)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def spawn(self, *words: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-m", "hostler", *words],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.children.append(child)
        return child

    def rows(self, *names: str) -> list[dict[str, Any]]:
        """All runs that are not in the trash, or those named."""
        keys = [key for name in names for key in resolve.runs(self.store, name)]
        found = named_rows.rows_of(self.store, keys) if names else rows(self.store)
        return [output.row_json(row) for row in found]

    def state(self, name: str) -> str:
        [row] = self.rows(name)
        return str(row["state"])

    def until(self, name: str, *states: str) -> str:
        wait_for(lambda: self.state(name) in states, f"{name} to be {states}")
        return self.state(name)

    def printed(self, name: str) -> str:
        [row] = self.rows(name)
        folder = self.folder / ".hostler" / "runs" / row["id"] / "logs"
        return "".join(path.read_text() for path in sorted(folder.glob("0*"))) if folder.exists() else ""

    def sweeps(self) -> list[str]:
        """Those that have a spec: a folder may be made a moment before it."""
        place = self.folder / ".hostler" / "sweeps"
        return sorted(path.parent.parent.name for path in place.glob("*/spec/000001.json"))

    def end(self) -> None:
        """Everything that was started here, by the cache folder it was given."""
        cache = self.env["HOSTLER_CACHE"]
        for _ in range(50):
            left = proctable.marked(cache, "HOSTLER_CACHE") - {os.getpid()}
            if not left:
                break
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)
        for child in self.children:
            child.kill()
            child.communicate()


def wait_for(true: Callable[[], object], what: str, limit: float = 60.0) -> None:
    deadline = time.monotonic() + limit
    while not true():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def make_world(tmp_path: Path, name: str = "project") -> World:
    folder = tmp_path / name
    folder.mkdir()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    known_python.give(tmp_path / "cache")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("HOSTLER_", "XDG_"))}
    env = {
        **inherited,
        **{f"HOSTLER_{k}": v for k, v in TIMES.items()},
        "PYTHONPATH": str(SOURCE),
        "HOSTLER_CACHE": str(tmp_path / "cache"),
        "TMPDIR": str(temporary),
        "COLUMNS": "200",
    }
    return World(folder, env)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path)
    try:
        yield made
    finally:
        made.end()
