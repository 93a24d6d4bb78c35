"""Starts Python scripts from parents that have already imported what they import.

The first run of a script goes by exec, and a parent is made ready beside it; later runs of the same code,
interpreter and environment are forks of it, under supervisors like any other. Whatever is in doubt is
started afresh: the parent itself refuses (`warm_parent.py`), or the command is not a plain script. Few
parents are kept, those used last; none outlives its worker.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostler import env as environment
from hostler.errors import HostlerError, MachineError
from hostler.worker.prepare import packages
from hostler.worker.process import spawning
from hostler.worker.process.process import Process
from hostler.worker.process.spawning import Spawner, Supervisors

KEPT = 8  # parents of one worker: runs on other GPUs have other environments
IDLE = 600.0  # seconds after which an unused one goes
RECENT = 60.0  # seconds in which one that was used makes no room for another
SLOW = 300.0  # seconds a parent may take to import
OPTIONS = ("-u", "-B", "-O", "-OO")
OWN = "HOSTLER_"  # variables that differ from run to run, and that no library reads
REFUSED_VARIABLES = ("PYTHONINSPECT", "PYTHONSTARTUP", "PYTHONPROFILEIMPORTTIME")


@dataclass(frozen=True)
class Script:
    """A command that is `python [OPTION…] script.py …`."""

    python: str
    options: tuple[str, ...]
    path: str  # as given: relative to the working folder, or absolute

    @property
    def at(self) -> int:
        """Which word of the command it is."""
        return 1 + len(self.options)


def script_of(argv: Sequence[str], env: Mapping[str, str]) -> Script | None:
    """The script a command runs; None if it is anything but a plain one."""
    if not argv or not os.path.basename(argv[0]).startswith("python"):
        return None
    count = next((n for n, word in enumerate(argv[1:]) if word not in OPTIONS), len(argv) - 1)
    options = tuple(argv[1 : 1 + count])
    path = argv[1 + count] if len(argv) > 1 + count else ""
    if not path.endswith(".py") or os.path.normpath(path) != path or path.startswith(("-", "..")):
        return None
    paths = env.get("PYTHONPATH", "").split(os.pathsep) if env.get("PYTHONPATH") else []
    if any(not one.startswith("/") for one in paths) or any(env.get(name) for name in REFUSED_VARIABLES):
        return None
    python = shutil.which(argv[0], path=env.get("PATH", os.defpath))
    return Script(python, options, path) if python else None


def imports(source: bytes) -> list[str]:
    """The modules that a script imports whatever happens, in its order; none if it cannot be read."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return []
    found: list[str] = []
    for node in body:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append(node.module)
    return [name for name in dict.fromkeys(found) if name.partition(".")[0] not in ("__future__", "hostler")]


def names_in(folder: Path) -> list[str]:
    """Modules that lie in a folder."""
    found = {entry.name.partition(".")[0] for entry in folder.iterdir() if not entry.name.startswith(".")}
    return sorted(found)


class Parent(Spawner):
    """A warm parent: the spawner of the supervisors whose runs are its forks. It is not started again."""

    def prepare(
        self, script: Script, env: Mapping[str, str], cwd: Path, folder: Path, *, strict: bool = False
    ) -> str:
        """Start it and wait until it has imported; why it won't do, or ''."""
        source, beside = (cwd / script.path).read_bytes(), (cwd / script.path).parent
        shadows = names_in(beside)
        modules = [name for name in imports(source) if name.partition(".")[0] not in shadows]
        given = spawning.marked(env)
        config = folder / "config.json"
        names = list(given)  # their values, of which some are secret, are in no file
        facts = {"modules": modules, "shadows": shadows, "env": names, "strict": strict}
        config.write_text(json.dumps(facts))
        command = [script.python, *script.options, spawning.text(folder, "warm_parent.py")]
        output = os.open(folder / "output", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            connection, popen = spawning.started(
                command,
                "warm",
                str(config),
                cwd=str(cwd),
                env=given,
                output=output,
                errors=output,
            )
        finally:
            os.close(output)
        self._set(connection, popen)
        return self._answer(connection)

    def _answer(self, connection: socket.socket) -> str:
        try:
            connection.settimeout(SLOW)
            text = spawning.line_of(connection).strip()
            connection.settimeout(None)
        except OSError as error:
            text = f"it did not answer: {error}"
        return "" if text == "ready" else text

    def _begin(self, folder: Path) -> None:
        raise ConnectionResetError("the warm parent is gone")


@dataclass
class WarmState:
    """Warm-start state of a kind of run."""

    stamps: Mapping[str, int] = field(default_factory=dict)
    pool: Supervisors | None = None  # once it is ready
    refused: str = ""
    used: float = 0.0

    def close(self) -> None:
        if self.pool:
            self.pool.close()
        self.pool = None


class Warmth:
    """The warm parents of one worker. All methods may be called from several threads."""

    def __init__(
        self, folder: Path, clock: Callable[[], float] = time.monotonic, *, wait: bool = False
    ) -> None:
        """`folder` is made on use; `wait`: parents are made ready before the first run goes on."""
        self._folder, self._clock, self._wait = folder, clock, wait
        self._lock = threading.Lock()
        self._entries: dict[str, WarmState] = {}
        self._closed = False

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        folder: Path,
        log: Path,
        code: Sequence[Any],
        strict: bool = False,
    ) -> Process:
        """Like Process.start; `code` names what the working folder holds. `strict`: the process ends through
        libc's `exit`, whatever its libraries have left to do."""
        values: dict[str, Any] = {"cwd": cwd, "env": env, "folder": folder, "log": log}
        script = script_of(argv, env)
        if script is None or not (cwd / script.path).is_file():
            return Process.start(argv, **values)
        key = key_of(script, env, [*code, strict])
        pool = self._ready(key)
        if pool:
            try:
                return Process.start(argv, **values, pool=pool, script_at=script.at)
            except MachineError:  # the parent is gone
                self._drop(key)
        self._make_ready(key, script, env, cwd, strict)
        return Process.start(argv, **values)

    def tidy(self) -> None:
        """End parents that nobody has used for long."""
        with self._lock:
            old = [k for k, entry in self._entries.items() if self._clock() - entry.used > IDLE]
            for entry in [self._entries.pop(k) for k in old]:
                entry.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for entry in self._entries.values():
                entry.close()
            self._entries.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def refusals(self) -> list[str]:
        """Why some runs are not started warm."""
        with self._lock:
            return [entry.refused for entry in self._entries.values() if entry.refused]

    def _ready(self, key: str) -> Supervisors | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.pool is None:
                return None
            entry.used = self._clock()
            if packages.stamps(entry.stamps) == entry.stamps:
                return entry.pool
            self._entries.pop(key).close()  # something was installed since
            return None

    def _drop(self, key: str) -> None:
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry:
                entry.close()

    def _make_ready(self, key: str, script: Script, env: Mapping[str, str], cwd: Path, strict: bool) -> None:
        with self._lock:
            if key in self._entries or self._closed:
                return
            if not self._has_room():
                return
            self._entries[key] = WarmState(used=self._clock())
        try:
            place = self._copy(key, cwd)
        except (OSError, shutil.Error) as error:
            self._entries[key].refused = str(error)
            return
        given = (key, script, env, place, strict)
        thread = threading.Thread(target=self._prepare, args=given, daemon=True)
        thread.start()
        if self._wait:
            thread.join()

    def _has_room(self) -> bool:
        """Whether another may be kept: the one that was used longest ago goes, if that is long ago. Making
        one for every run, and none of them used again, would be worse than none."""
        if len(self._entries) < KEPT:
            return True
        oldest = min(self._entries, key=lambda k: self._entries[k].used)
        if self._clock() - self._entries[oldest].used < RECENT:
            return False
        self._entries.pop(oldest).close()
        return True

    def _copy(self, key: str, cwd: Path) -> Path:
        """The run's working folder as it is now, before the run writes to it: imports may look around."""
        place = self._folder / key
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        shutil.copytree(cwd, place / "work", symlinks=True)
        return place

    def _prepare(self, key: str, script: Script, env: Mapping[str, str], place: Path, strict: bool) -> None:
        parent = Parent()
        stamps: Mapping[str, int] = {}
        try:
            stamps = packages.stamps(packages.places(script.python))
            refused = parent.prepare(script, env, place / "work", place, strict=strict)
        except (OSError, HostlerError) as error:
            refused = str(error)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or self._closed or refused:
                parent.close()
            if entry:
                entry.refused, entry.stamps = refused, stamps
                entry.pool = None if refused or self._closed else Supervisors(parent)


def key_of(script: Script, env: Mapping[str, str], code: Sequence[Any]) -> str:
    """The same for runs that may share a parent: interpreter, code, and all of the environment but ours."""
    variables = sorted((name, value) for name, value in env.items() if not name.startswith(OWN))
    facts = [script.python, _modified(script.python), script.options, script.path, list(code), variables]
    return hashlib.sha256(json.dumps(facts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def wanted() -> bool:
    """Whether this machine's user has not turned it off, and forks are safe here."""
    return environment.warm() and spawning.forks()
