"""Training scripts that a person starts by hand: a project, a store, and processes that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import hostler
from hostler.records.rows import Row, rows
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.run.state import RunState
from hostler.records.series import metrics
from hostler.records.sweep import sweeps
from hostler.store import Store, open_store

SOURCE = str(Path(hostler.__file__).parents[1])


@dataclass
class Done:
    code: int
    out: str
    err: str


@dataclass
class Scripts:
    """One project; `cache` is what makes a machine another one, with `host`."""

    root: Path
    store: str = ""
    cache: str = "cache"
    host: str = ""
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.root / "project").mkdir(parents=True, exist_ok=True)

    @property
    def project(self) -> Path:
        return self.root / "project"

    def write(self, text: str, name: str = "train.py") -> Path:
        path = self.project / name
        path.write_text(text)
        return path

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        keep = {k: v for k, v in os.environ.items() if not k.startswith("HOSTLER_")}
        given = {
            "HOSTLER_CACHE": str(self.root / self.cache),
            "XDG_RUNTIME_DIR": str(self.root / self.cache),
            "PYTHONPATH": os.pathsep.join(filter(None, [self._another_host(), SOURCE])),
            "HOSTLER_BEAT": "0.2",
            "HOSTLER_LEASE": "2",
            "HOSTLER_FLUSH": "0.1",
            **({"HOSTLER_STORE": self.store} if self.store else {}),
            **self.env,
            **(more or {}),
        }
        (self.root / self.cache).mkdir(exist_ok=True)
        return {**keep, **given}

    def start(self, *words: str, name: str = "train.py", **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-u", name, *words],
            cwd=self.project,
            env=self.variables(more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, name: str = "train.py", **more: str) -> Done:
        process = self.start(*words, name=name, **more)
        out, err = process.communicate(timeout=600)
        return Done(process.returncode, out, err)

    @contextmanager
    def running(self, *words: str, name: str = "train.py", **more: str) -> Iterator[subprocess.Popen[str]]:
        """A script beside the test; at the end of it nothing that it started is left, to hold its pipes."""
        process = self.start(*words, name=name, **more)
        try:
            yield process
        finally:
            end_group(process)
            process.communicate()

    def kill(self, process: subprocess.Popen[str]) -> Done:
        end_group(process)
        out, err = process.communicate()
        return Done(process.returncode, out, err)

    def opened(self) -> Store:
        return open_store(self.store or str(self.project / ".hostler"))

    def rows(self) -> list[Row]:
        return rows(self.opened())

    def row(self) -> Row:
        [row] = self.rows()
        return row

    def state(self, row: Row) -> RunState:
        return control.state_of(self.opened(), row.key)

    def curve(self, row: Row, name: str) -> list[tuple[int, float]]:
        points = metrics.read(self.opened(), row.id, self.state(row).attempt)
        return [(p.step, p.values[name]) for p in points if name in p.values]

    def key(self) -> RunKey:
        [name] = sweeps.names(self.opened())
        return RunKey(name, sweeps.load(self.opened(), name).run_id(0))

    def _another_host(self) -> str:
        """A folder whose sitecustomize gives the machine another name."""
        if not self.host:
            return ""
        folder = self.root / f"host-{self.host}"
        folder.mkdir(exist_ok=True)
        text = (
            f"import os\nreal = os.uname()\nfake = os.uname_result((real[0], {self.host!r}, *real[2:]))\n"
            "os.uname = lambda: fake\n"
        )
        (folder / "sitecustomize.py").write_text(text)
        return str(folder)


def end_group(process: subprocess.Popen[str]) -> None:
    """SIGKILL for a script and the loaders it has started, which may outlive it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.02)


def line_of(process: subprocess.Popen[str], text: str) -> str:
    """The first line it prints that holds this text."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"it ended without saying {text!r}")
