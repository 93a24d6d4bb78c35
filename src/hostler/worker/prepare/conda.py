"""conda's environments: made once from a file, or found by name. micromamba, mamba or conda does it."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from hostler import env
from hostler.errors import MachineError, PrepareError
from hostler.worker.prepare import command
from hostler.worker.prepare.once import Note, once_in_place

TOOLS = ("micromamba", "mamba", "conda")
HOMES = ("miniforge3", "mambaforge", "miniconda3", "anaconda3")  # a batch shell often lacks them on PATH


def created(name: str, code: Path, cache: Path, note: Note) -> Path:
    """The prefix of an environment made from an environment.yml of the project."""
    file = code / name
    try:
        content = file.read_bytes()
    except OSError as error:
        raise PrepareError(
            f"cannot read {name}: {error.strerror}", hint="is it in the project, and not ignored?"
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
    hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(names) or 'none'}"
    raise PrepareError(f"there is no conda environment {name!r} on this machine", hint=hint)


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
        "there is no conda on this machine", hint="install micromamba, or use `python: {requirements: …}`"
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
