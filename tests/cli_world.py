"""A project folder of its own, with its own cache and machine folder, for tests that type commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked_commands
import known_python
from hostler.records.rows import rows
from hostler.store import open_store

SOURCE = Path(__file__).parent.parent / "src"
FAST = {
    "HOSTLER_BEAT": "0.2",
    "HOSTLER_LEASE": "3",
    "HOSTLER_FLUSH": "0.1",
    "HOSTLER_SETTLE": "0.3",
    "HOSTLER_POLL": "0.05",
    "HOSTLER_WAIT_MIN": "0.05",
    "HOSTLER_DISK_MIN": "1000",
}
# What changes what commands do; the last one has each compile all of hostler anew, a third of its time.
FOREIGN = ("HOSTLER_", "XDG_", "NO_COLOR", "PYTHONDONTWRITEBYTECODE")
TRAIN = """
import argparse, json, os, sys, time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--nap", type=float, default=0.0)
parser.add_argument("--fail", default="")
parser.add_argument("--flaky", action="store_true")
given = parser.parse_args()
for step in range(1, given.epochs + 1):
    print(json.dumps({"step": step, "loss": 1 / step, "lr": given.lr}), flush=True)
    time.sleep(given.nap)
if given.fail or (given.flaky and os.environ["HOSTLER_ATTEMPT"] == "1"):
    raise ValueError(given.fail or "the first time is hard")
Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "weights.txt").write_text("w" * 100)
Path(os.environ["HOSTLER_OUTPUT_DIR"], "report.txt").write_text("fine")
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class World:
    """`run` types a command and waits; `start` leaves it running."""

    def __init__(self, root: Path, name: str = "project") -> None:
        self.folder = root / name
        self._private = root / "private"
        for folder in (self.folder, self._private / "tmp"):
            folder.mkdir(parents=True)
        self.write("train.py", TRAIN)
        known_python.give(self._private / "cache")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self.env = {
            **kept,
            **FAST,
            "PYTHONPATH": str(SOURCE),
            "HOSTLER_CACHE": str(self._private / "cache"),
            "TMPDIR": str(self._private / "tmp"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]]),
        }

    @property
    def store(self) -> Path:
        return self.folder / ".hostler"

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def run(self, *words: str, timeout: float = 120, **variables: str) -> Answer:
        return self._answer(words, {**self.env, **variables}, None, timeout)

    def answered(self, *words: str, given: str, timeout: float = 120) -> Answer:
        """Types a command, and `given` when it asks."""
        return self._answer(words, self.env, given, timeout)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command(words),
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def in_state(self, state: str) -> int:
        """How many runs are in it, read from the store: a command for each look would use a core up."""
        return sum(row.state == state for row in rows(open_store(str(self.store))))

    def processes(self, *, holding: str = "") -> list[int]:
        """Processes that have this world's cache in their environment: its workers and runs."""
        mark = f"HOSTLER_CACHE={self.env['HOSTLER_CACHE']}\0".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                ours = mark in (path / "environ").read_bytes() and path.name != str(os.getpid())
                if ours and holding in (path / "cmdline").read_text().replace("\0", " "):
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    def kill_workers(self) -> None:
        for pid in self.processes(holding="hostler.worker"):
            os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End whatever still runs here."""
        while pids := self.processes():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)

    def _answer(
        self, words: tuple[str, ...], env: dict[str, str], given: str | None, timeout: float
    ) -> Answer:
        done = forked_commands.run(self._command(words), self.folder, env, given, timeout)
        return Answer(done.returncode, done.stdout, done.stderr)

    def _command(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "hostler", *words]


def eventually(what: Callable[[], bool], seconds: float = 60.0) -> None:
    """Until it is so; an assertion otherwise."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)
