"""Which Python a run's command finds first: made once per machine and content, or one that is there.

An environment holds its own path, so it is built where it stays. Installers' output is kept off the
terminal; their last lines are in the error.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from hostler import env
from hostler.errors import MachineError, PrepareError
from hostler.spec.job import PythonEnv
from hostler.worker import preflight
from hostler.worker.prepare import command, conda, requirements
from hostler.worker.prepare.code import identity
from hostler.worker.prepare.once import Note, once, once_in_place

_FACTS = "import sys, sysconfig; print(sys.version, sysconfig.get_platform(), sys.base_prefix)"


@dataclass(frozen=True)
class PathEnv:
    """What makes `python` in a command this one."""

    path_prefix: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    exe: str = "python"


def python_env(spec: PythonEnv, code: Path, cache: Path, note: Note) -> PathEnv:
    """The Python a job asks for; the machine's own if it asks for none. One that is there is not changed:
    requirements beside it are checked."""
    found = _found(spec, code, cache, note)
    if spec.requirements and (spec.conda_env or spec.venv or spec.exe):
        preflight.check_pins(found.exe, requirements.read(code / spec.requirements).lines)
    return found


def _found(spec: PythonEnv, code: Path, cache: Path, note: Note) -> PathEnv:
    if spec.requirements and not (spec.conda_env or spec.venv or spec.exe):
        return _virtual(_installed(spec.requirements, code, cache, note))
    if spec.conda:
        return _conda(conda.created(spec.conda, code, cache, note))
    if spec.conda_env:
        return _conda(conda.named(spec.conda_env))
    if spec.venv:
        return _existing(spec.venv, code)
    if spec.exe:
        return _interpreter(spec.exe, code, cache, note)
    return _own(cache, note)


def _own(cache: Path, note: Note) -> PathEnv:
    """The machine's own Python. Where it is there as python3 alone, `python` means it."""
    python3 = shutil.which("python3")
    if shutil.which("python") or not python3:
        return PathEnv(exe=shutil.which("python") or "python")
    return PathEnv([str(_named_python(python3, cache, note))], {}, python3)


def _installed(name: str, code: Path, cache: Path, note: Note) -> Path:
    base = _base_python()
    wishes = requirements.read(code / name)
    key = wishes.key(_facts(base), identity(code) if wishes.local else "")

    def make(place: Path) -> None:
        note(f"installing {name}")
        _new_venv(base, place)
        _install(name, code, place)

    return once_in_place(cache / "envs" / key, make, what=f"installing {name}", note=note)


def _base_python() -> str:
    found = shutil.which("python3") or shutil.which("python")
    if found is None:
        raise MachineError("there is no python3 on this machine's PATH", hint="install Python 3")
    return found


def _alone() -> dict[str, str]:
    """This environment without what makes another Python's packages look installed in the new one."""
    return {
        name: value for name, value in env.inherited().items() if name not in ("PYTHONPATH", "PYTHONHOME")
    }


def _facts(python: str) -> str:
    done = subprocess.run(
        [python, "-c", _FACTS], env=_alone(), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise MachineError(f"{python} does not start", hint=done.stderr.strip()[-200:])
    return done.stdout


def _new_venv(base: str, place: Path) -> None:
    """By the standard library, so that it has a pip of its own; by uv where Python came without that part."""
    what = "making a virtual environment"
    try:
        command.run([base, "-m", "venv", str(place)], what=what, cwd=place, environ=_alone())
    except PrepareError as error:
        uv = shutil.which("uv")
        if uv is None:
            raise MachineError(
                f"{base} cannot make a virtual environment: {error.message}",
                hint="install uv, or the python3-venv package of the system",
            ) from error
        again = [uv, "venv", "-q", "--seed", "--allow-existing", "--python", base, str(place)]
        command.run(again, what=what, cwd=place, environ=_alone())


def _install(name: str, code: Path, place: Path) -> None:
    python = str(place / "bin" / "python")
    uv = shutil.which("uv")
    if uv:
        words = [uv, "pip", "install", "--python", python, "-r", name]
    else:
        words = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r", name]
    environ = {**_alone(), "VIRTUAL_ENV": str(place)}
    command.run(words, what=f"installing {name}", cwd=code, environ=environ)


def _virtual(place: Path) -> PathEnv:
    return PathEnv([str(place / "bin")], {"VIRTUAL_ENV": str(place)}, str(place / "bin" / "python"))


def _conda(prefix: Path) -> PathEnv:
    found = {"CONDA_PREFIX": str(prefix), "CONDA_DEFAULT_ENV": prefix.name}
    return PathEnv([str(prefix / "bin")], found, str(prefix / "bin" / "python"))


def _existing(text: str, code: Path) -> PathEnv:
    place = code / os.path.expanduser(text)  # noqa: PTH111
    if not os.access(place / "bin" / "python", os.X_OK):
        raise PrepareError(
            f"{place} is no virtual environment on this machine: it has no bin/python",
            hint="give its absolute path there, or `python: {requirements: …}` to have one made",
        )
    return _virtual(place)


def _interpreter(text: str, code: Path, cache: Path, note: Note) -> PathEnv:
    path = os.path.expanduser(text)  # noqa: PTH111
    exe = str(code / path) if "/" in path else shutil.which(path)
    if exe is None or not os.access(exe, os.X_OK):
        raise PrepareError(
            f"there is no interpreter {text} on this machine", hint="give its absolute path there"
        )
    folder = os.path.dirname(exe)
    if os.path.basename(exe) == "python":
        return PathEnv([folder], {}, exe)
    return PathEnv([str(_named_python(exe, cache, note)), folder], {}, exe)


def _named_python(exe: str, cache: Path, note: Note) -> Path:
    """A folder in which `python` is this interpreter; a script, as a link would lose its environment."""

    def make(place: Path) -> None:
        for name in ("python", "python3"):
            script = place / name
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(exe)} "$@"\n')
            script.chmod(0o755)

    key = hashlib.sha256(os.fsencode(exe)).hexdigest()[:40]
    return once(cache / "exe" / key, make, what=f"naming {exe}", note=note)
