"""A tracking tool of one attempt, seen from the worker: its process, its folder, its files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import hostler
from hostler import env
from hostler.frozen import dataclass
from hostler.records.series.points import Packer, Point
from hostler.trackers import registry
from hostler.trackers.base import Closing, Opening
from hostler.trackers.feed_folder import CLOSED, FAILED, FeedFolder, FeedState

HAS = """
import sys
from importlib.util import find_spec
found = [find_spec(name) for name in sys.argv[1:]]
sys.exit(sys.version_info < (3, 10) or not all(one and one.origin for one in found))
"""
# A folder of a package's name, such as W&B's own ./wandb, is none: it has no origin.
ASK = 60.0  # seconds for a Python to say whether it has a package


@dataclass(frozen=True)
class FeederPython:
    """A Python that may feed a tool, with the environment that it needs."""

    exe: str
    environ: Mapping[str, str]

    def has(self, package: str) -> bool:
        """Whether it can import hostler, and this."""
        words = [self.exe, "-c", HAS, "hostler", *([package] if package else [])]
        try:
            done = subprocess.run(words, env=dict(self.environ), timeout=ASK, capture_output=True)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0


def interpreters(exe: str, environ: Mapping[str, str]) -> tuple[FeederPython, ...]:
    """The run's own Python, then hostler's. Neither belongs to the run's processes, which end with it."""
    plain = env.apart(environ)
    own = str(Path(hostler.__file__).resolve().parents[1])
    return FeederPython(exe, plain), FeederPython(sys.executable, {**plain, "PYTHONPATH": own})


class Feed:
    def __init__(self, desk: FeedFolder, opening: Opening) -> None:
        self.desk, self.opening = desk, opening
        self._packer = Packer()
        self._process: subprocess.Popen[bytes] | None = None
        self._failed = ""
        self.sent: set[str] = set()  # files that are kept

    @property
    def kind(self) -> str:
        return self.opening.kind

    def begin(self, interpreters: Sequence[FeederPython]) -> None:
        """Start it, in the first Python that has what it needs."""
        self.desk.lay(self.opening)
        package = registry.package(self.kind)
        python = next((interpreter for interpreter in interpreters if interpreter.has(package)), None)
        if python is None:
            self._failed = f"no Python here has {package or 'hostler'} ({registry.remedy(self.kind)})"
            return
        command = [python.exe, "-m", "hostler.trackers.feeder", str(self.desk.folder)]
        with open(self.desk.output, "ab") as output:
            self._process = subprocess.Popen(
                command,
                env=dict(python.environ),
                cwd=self.desk.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the run
            )

    def add(self, points: Sequence[Point]) -> None:
        if points and not self._failed:
            with open(self.desk.points, "ab") as file:
                file.write(b"".join(map(self._packer.pack, points)))

    def close(self, closing: Closing) -> None:
        self.desk.close(closing)

    def told(self) -> FeedState:
        """The tool's state; a process that ended without reporting has failed."""
        if self._failed:
            return FeedState(state=FAILED, error=self._failed)
        state = self.desk.told()
        if self.running or state.state in (CLOSED, FAILED):
            return state
        return replace(self.desk.told(), state=FAILED, error=state.error or self._last_words())

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def end(self) -> None:
        """No process is left of it."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def files(self) -> Iterator[tuple[str, Path]]:
        """Finished files that are not kept yet, by their names below `files/`."""
        for path in sorted(self.desk.files.rglob("*")):
            name = path.relative_to(self.desk.files).as_posix()
            if (
                name not in self.sent
                and path.is_file()
                and not any(p.startswith(".") for p in name.split("/"))
            ):
                yield name, path

    def _last_words(self) -> str:
        try:
            lines = self.desk.output.read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        code = self._process.returncode if self._process else None
        return f"its process ended with exit code {code}" + (f": {lines[-1][:200]}" if lines else "")
