"""Checks before submission that runs will appear in the tracking tools that a project names.

What is certain is refused; where another machine's Python would have to be asked, or a package may come along
with another, it is said.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import hostler
from hostler import env
from hostler.errors import MachineError, UsageError
from hostler.spec.project import Project
from hostler.spec.tracking import MLFLOW
from hostler.trackers import registry
from hostler.trackers.feed import FeederPython

URI = "MLFLOW_TRACKING_URI"
_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")

Say = Callable[[str], None]


def check(project: Project, say: Say, *, here: bool) -> None:
    """`here`: runs are carried out on this machine."""
    for tracker in project.trackers:
        if tracker.kind == MLFLOW and not tracker.options.get("uri"):
            _check_uri(project)
        if registry.package(tracker.kind):
            _check_package(project, tracker.kind, say, here)


def _check_uri(project: Project) -> None:
    if URI not in project.env and URI not in project.secrets and not env.secret(URI):
        raise UsageError(
            "trackers: mlflow has no uri, and MLFLOW_TRACKING_URI is not set",
            hint="trackers: {mlflow: {uri: http://host:5000}}, or sqlite:///mlflow.db",
        )


def _check_package(project: Project, kind: str, say: Say, here: bool) -> None:
    package = registry.package(kind)
    if here and registry.is_here(kind):
        return  # hostler's own Python can do it
    if project.python.requirements and not _named_in(project.root / project.python.requirements, package):
        say(
            f"trackers: {package} is not in {project.python.requirements}; if nothing in it brings {package} "
            f"along, runs go on without {kind}"
        )
    elif here and (exe := _python(project)) and not FeederPython(exe, _with_hostler()).has(package):
        raise MachineError(
            f"trackers: {kind} needs the package {package}, which {exe} does not have",
            hint=registry.remedy(kind),
        )


def _with_hostler() -> dict[str, str]:
    """As a run will have it."""
    own = str(Path(hostler.__file__).resolve().parents[1])
    inherited = env.inherited()
    return {**inherited, "PYTHONPATH": os.pathsep.join(filter(None, [inherited.get("PYTHONPATH"), own]))}


def _python(project: Project) -> str | None:
    """The Python that runs will have, if it is there already."""
    python_env = project.python
    if python_env.requirements or python_env.conda or python_env.conda_env:
        return None
    if python_env.venv:
        return str(project.root / Path(python_env.venv).expanduser() / "bin" / "python")
    return python_env.exe or shutil.which("python") or shutil.which("python3")


def _named_in(file: Path, package: str) -> bool:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return True  # that it is missing is said elsewhere
    wanted = re.sub(r"[-_.]+", "-", package).lower()
    names = (match[1] for line in lines if (match := _NAME.match(line)))
    return any(re.sub(r"[-_.]+", "-", name).lower().startswith(wanted) for name in names)
