"""Checks before submission that the files a job names exist: its script, its requirements, its setup."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from hostler.errors import MissingError
from hostler.fleet.snapshot.ignore import OWN_FILE
from hostler.spec.job import Job
from hostler.spec.project import Project
from hostler.spec.script import script_at, suggestion


def files(project: Project, job: Job) -> list[str]:
    """Files of the project that the job can't do without, by their real names from its root.

    MissingError for one that is not there. Code that machines fetch from git, or that a setup may make,
    is not looked at.
    """
    if project.git is not None:
        return []
    named = [(what, name) for what, name in _named(project, job) if "{" not in name]
    found = [_checked(project, what, name) for what, name in named]
    return [name for name in found if name]


def check_taken(wanted: Collection[str], taken: Collection[str]) -> None:
    """After the snapshot: what the job needs is in it."""
    for name in wanted:
        if name not in taken:
            raise MissingError(
                f"{name} is not part of the code that is sent", hint=f"is it in .gitignore or {OWN_FILE}?"
            )


def _named(project: Project, job: Job) -> Iterator[tuple[str, str]]:
    if job.python.requirements:
        yield "python: requirements", job.python.requirements
    if job.python.conda:
        yield "python: conda", job.python.conda
    at = script_at(job.setup)
    if at is not None:
        yield "setup", os.path.join(job.cwd, job.setup[at])
    at = script_at(job.command)
    if at is not None and not job.setup:
        yield "command", os.path.join(job.cwd, job.command[at])


def _checked(project: Project, what: str, name: str) -> str:
    path = project.root / name
    if name.startswith("/") and not os.path.isfile(path):
        return ""  # the machines may have it
    if not os.path.isfile(path):
        near = suggestion(name, project.root) or f"create it, or name another under `{what.split(':')[0]}:`"
        raise MissingError(f"{what}: {name} does not exist in {project.root}", hint=near)
    real, root = os.path.realpath(path), os.path.realpath(project.root)
    return os.path.relpath(real, root) if os.path.commonpath([real, root]) == root else ""
