"""Version, platform and packages of an interpreter that is not ours.

Asking takes a tenth of a second or more, so the answer is kept on this machine until a folder on that
interpreter's path changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from hostler import env
from hostler.errors import MachineError
from hostler.frozen import dataclass

TIMEOUT = 60.0
_LOCK = threading.Lock()
_HELD: dict[str, tuple[Interpreter, dict[str, int]]] = {}  # of this process

# Runs in the other interpreter, whatever its version from 3.8 on. What the standard library has for packages
# is asked where they are of an older form: to import that takes longer than to read what most are now.
QUESTION = """
import json, os, platform, sys

def told(folder):
    with open(os.path.join(folder, "METADATA"), encoding="utf-8") as file:
        head, blank, _ = file.read(4000).partition("\\n\\n")
    lines = head.splitlines() if blank else head.splitlines()[:-1]  # the last one may be cut
    row = dict(line.split(": ", 1) for line in lines if line.startswith(("Name: ", "Version: ")))
    return row["Name"], row["Version"]

def rows(place):
    try:
        names = os.listdir(place)
        if not any(name.endswith((".egg-info", ".egg")) or name == "EGG-INFO" for name in names):
            return [told(os.path.join(place, name)) for name in names if name.endswith(".dist-info")]
    except (OSError, ValueError, KeyError):
        pass
    from importlib import metadata
    return [(one.metadata["Name"], one.version) for one in metadata.distributions(path=[place])]

found = {}
path = [p for p in sys.path if p]
for place in path:
    for name, version in rows(place) if os.path.exists(place) else ():
        if name:
            found.setdefault(name.strip().lower(), (version or "").strip())
print(json.dumps({"python": platform.python_version(), "implementation": platform.python_implementation(),
                  "platform": platform.platform(), "prefix": sys.prefix, "path": path, "packages": found}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter; `packages` maps lower-case names to versions."""

    exe: str
    python: str
    implementation: str
    platform: str
    prefix: str
    path: tuple[str, ...]
    packages: Mapping[str, str]


def inspect(exe: str) -> Interpreter:
    """The interpreter at that path, from memory if nothing of it has changed."""
    with _LOCK:
        held = _HELD.get(exe)
        if held is None or held[1] != _stamps(held[0]):
            interpreter = _found(exe)
            held = _HELD[exe] = interpreter, _stamps(interpreter)
        return held[0]


def _found(exe: str) -> Interpreter:
    memory = env.cache_dir() / "interpreters" / f"{hashlib.sha256(exe.encode()).hexdigest()[:16]}.json"
    known = _recall(memory, exe)
    if known is not None:
        return known
    interpreter = _ask(exe)
    _keep(memory, interpreter)
    return interpreter


def _ask(exe: str) -> Interpreter:
    try:
        done = subprocess.run(
            [exe, "-c", QUESTION], capture_output=True, text=True, timeout=TIMEOUT, check=True, cwd="/"
        )
        answer = json.loads(done.stdout.splitlines()[-1])
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
        raise MachineError(f"{exe} does not work: {reason}", hint="fix `python:`") from error
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        raise MachineError(f"{exe} does not work as a Python: {error}", hint="fix `python:`") from error
    return Interpreter(exe=exe, **{**answer, "path": tuple(answer["path"])})


def _recall(memory: Path, exe: str) -> Interpreter | None:
    try:
        kept = json.loads(memory.read_text())
        interpreter = Interpreter(**{**kept["interpreter"], "path": tuple(kept["interpreter"]["path"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return interpreter if interpreter.exe == exe and kept["stamps"] == _stamps(interpreter) else None


def _keep(memory: Path, found: Interpreter) -> None:
    """Best effort: a disk that is full or read-only only makes the next look slower."""
    temporary = memory.with_suffix(f".{os.getpid()}.tmp")
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"interpreter": asdict(found), "stamps": _stamps(found)}))
        temporary.replace(memory)
    except OSError:
        pass


def places(exe: str) -> tuple[str, ...]:
    """The interpreter and the folders on its path: installing something changes one of them."""
    interpreter = inspect(exe)
    return interpreter.exe, *interpreter.path


def stamped(exe: str) -> tuple[tuple[str, int], ...]:
    """The same as long as nothing is installed for this Python."""
    return tuple(stamps(places(exe)).items())


def stamps(paths: Iterable[str]) -> dict[str, int]:
    return {path: _modified(path) for path in paths}


def _stamps(found: Interpreter) -> dict[str, int]:
    return stamps((found.exe, *found.path))


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
