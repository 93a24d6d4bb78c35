"""Words that a script gets for its parameters once its source is read, and what its parser makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostler.fleet import option_forms
from hostler.spec.argv import build
from hostler.spec.job import Job
from hostler.spec.project import default_project
from hostler.spec.style import Style

PLACES = {"output_dir": "/o"}


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_suffix(".sh") if text.startswith("#!") else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def settled(folder: Path, params: dict[str, Any], style: Style | None = None, **keys: Any) -> Job:
    command = keys.pop("command", (sys.executable, "train.py"))
    command = ("python", *command[1:]) if command[0] == sys.executable else command
    job = Job(name="a", command=command, runs=(params,), **keys)
    return option_forms.settled(job, replace(default_project(folder), forms=style or Style()))


def words(folder: Path, params: dict[str, Any], style: Style | None = None, **keys: Any) -> list[str]:
    job = settled(folder, params, style, **keys)
    return list(build(job, params, PLACES, False).argv[len(job.command) :])


def got(folder: Path, params: dict[str, Any], style: Style | None = None, **keys: Any) -> dict[str, Any]:
    """What the script's own parser made of these parameters: it prints it as JSON."""
    job = settled(folder, params, style, **keys)
    argv = list(build(job, params, PLACES, False).argv)
    argv[0] = sys.executable if argv[0] == "python" else argv[0]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
