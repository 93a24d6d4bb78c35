"""The Python that a run's command finds first: made once per machine and content, or an existing one.

An environment holds its own path, so it is built where it stays. Installers' output is kept off the
terminal; their last lines are in the error.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shlex
import shutil
import subprocess
from dataclasses import field
from pathlib import Path

from hostler import env
from hostler.errors import MachineError, PrepareError
from hostler.frozen import dataclass
from hostler.spec.job import PythonEnv
from hostler.worker import preflight
from hostler.worker.prepare import command, requirements
from hostler.worker.prepare.code import identity
from hostler.worker.prepare.once import Note, once, once_in_place

_FACTS = "import sys, sysconfig; print(sys.version, sysconfig.get_platform(), sys.base_prefix)"


@dataclass(frozen=True)
class PathEnv:
    """PATH and variables that make `python` in a command this Python."""

    path_prefix: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    exe: str = "python"


def python_env(spec: PythonEnv, code: Path, cache: Path, note: Note) -> PathEnv:
    """The Python a job asks for; the machine's own if it asks for none. One that is there is not changed:
    requirements beside it are checked."""
    path_env = _found(spec, code, cache, note)
    if spec.requirements and (spec.conda_env or spec.venv or spec.exe):
        preflight.check_pins(path_env.exe, requirements.read(code / spec.requirements).lines)
    return path_env


def _found(spec: PythonEnv, code: Path, cache: Path, note: Note) -> PathEnv:
    if spec.requirements and not (spec.conda_env or spec.venv or spec.exe):
        return _virtual(_installed(spec.requirements, code, cache, note))
    if spec.conda:
        return _conda(created(spec.conda, code, cache, note))
    if spec.conda_env:
        return _conda(named(spec.conda_env))
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
        raise MachineError("python3 was not found on this machine's PATH", hint="install Python 3")
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
            f"{place} is not a virtual environment on this machine: it has no bin/python",
            hint="give its absolute path there, or `python: {requirements: …}` to have one made",
        )
    return _virtual(place)


def _interpreter(text: str, code: Path, cache: Path, note: Note) -> PathEnv:
    path = os.path.expanduser(text)  # noqa: PTH111
    exe = str(code / path) if "/" in path else shutil.which(path)
    if exe is None or not os.access(exe, os.X_OK):
        raise PrepareError(
            f"the interpreter {text} does not exist on this machine", hint="give its absolute path there"
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


# conda's environments: made once from a file, or found by name. micromamba, mamba or conda does it.


TOOLS = ("micromamba", "mamba", "conda")
HOMES = ("miniforge3", "mambaforge", "miniconda3", "anaconda3")  # a batch shell often lacks them on PATH


def created(name: str, code: Path, cache: Path, note: Note) -> Path:
    """The prefix of an environment made from an environment.yml of the project."""
    file = code / name
    try:
        content = file.read_bytes()
    except OSError as error:
        raise PrepareError(
            f"cannot read {name}: {error.strerror}", hint="check that it is in the project, and not ignored"
        ) from error
    tool = find_tool()
    key = hashlib.sha256(content + b"\0" + os.uname().machine.encode()).hexdigest()[:40]

    def make(place: Path) -> None:
        note(f"creating the conda environment of {name}")
        place.rmdir()  # conda wants to make it itself
        command.run(create(tool, place, file), what=f"creating {name}", cwd=code, environ=env.inherited())

    return once_in_place(cache / "envs" / f"conda-{key}", make, what=f"creating {name}", note=note)


def named(name: str) -> Path:
    """The prefix of an environment that exists on this machine, by its name or path."""
    if "/" in name:
        known = [os.path.expanduser(name)]  # noqa: PTH111
    else:
        known = _known()
    for prefix in known:
        if name in (os.path.basename(prefix), prefix) or "/" in name:
            return _checked(Path(prefix), name)
    if name in ("base", "root") and known:
        return _checked(Path(known[0]), name)
    names = sorted(os.path.basename(prefix) for prefix in known)
    close = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {close[0]}?" if close else f"this machine has: {', '.join(names) or 'none'}"
    raise PrepareError(f"no conda environment named {name!r} on this machine", hint=hint)


def find_tool() -> str:
    """The program that makes environments here."""
    given = env.inherited()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            return found
    for path in (given.get("MAMBA_EXE"), given.get("CONDA_EXE"), *_usual_places()):
        if path and os.access(path, os.X_OK):
            return path
    raise MachineError(
        "conda was not found on this machine", hint="install micromamba, or use `python: {requirements: …}`"
    )


def create(tool: str, prefix: Path, file: Path) -> list[str]:
    """The command that makes an environment from a file."""
    if os.path.basename(tool) == "micromamba":
        return [tool, "create", "-y", "-q", "-p", str(prefix), "-f", str(file)]
    return [tool, "env", "create", "-q", "-p", str(prefix), "-f", str(file)]


def _usual_places() -> list[str]:
    homes = [Path.home() / home for home in HOMES] + [Path("/opt") / home for home in ("conda", *HOMES)]
    return [str(home / "bin" / "conda") for home in homes]


def _known() -> list[str]:
    done = subprocess.run(
        [find_tool(), "env", "list", "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    try:
        found = [str(prefix) for prefix in json.loads(done.stdout)["envs"]]
    except (ValueError, KeyError, TypeError):
        found = []
    prefix = env.inherited().get("CONDA_PREFIX")
    beside = Path(prefix, "envs") if prefix else None
    if beside is not None and beside.is_dir():
        found += [str(path) for path in sorted(beside.iterdir())]
    return found


def _checked(prefix: Path, name: str) -> Path:
    if not os.access(prefix / "bin" / "python", os.X_OK):
        raise PrepareError(
            f"the conda environment {name!r} ({prefix}) has no Python", hint="conda install python"
        )
    return prefix
