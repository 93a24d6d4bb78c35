"""`hostler image build --docker`: an image with a project's packages, for workers that are containers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from hostler.cli import here
from hostler.errors import MachineError, UsageError
from hostler.spec import dockerfile
from hostler.spec.project import Project

PROGRAMS = ("docker", "podman")
FILE = "Dockerfile"


def build(tag: str | None, base: str, *, push: bool) -> int:
    """Write the Dockerfile, if there is none; with a tag, build and push it."""
    project = here.project()
    path = _written(project, base)
    if tag is None:
        click.echo(
            f"hostler: nothing is built; --tag registry/me/{project.name}:1 builds and pushes it", err=True
        )
        return 0
    program = next((name for name in PROGRAMS if shutil.which(name)), None)
    if program is None:
        raise MachineError(
            f"{path.name} cannot be built: neither {' nor '.join(PROGRAMS)} is installed here",
            hint=f"where one is installed: docker build -t {tag} . && docker push {tag}",
        )
    _run([program, "build", "--tag", tag, "--file", str(path), str(project.root)])
    if push:
        _run([program, "push", tag])
    click.echo(tag)
    click.echo(f"hostler: `image: {tag}` in a fleet uses it", err=True)
    return 0


def _written(project: Project, base: str) -> Path:
    """Write the Dockerfile, unless a person has one."""
    path = project.root / FILE
    wanted = project.python.requirements
    if wanted and not (project.root / wanted).is_file():
        raise UsageError(
            f"{wanted}, named by `python: {{requirements}}`, does not exist", hint="write it first"
        )
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(dockerfile.dockerfile(project, base))
        click.echo(f"hostler: {path.name} is written", err=True)
    except FileExistsError:
        click.echo(f"hostler: {path.name} exists already and is used as it is", err=True)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from None
    return path


def _run(words: Sequence[str]) -> None:
    code = subprocess.run(words).returncode
    if code:
        login = f"; {words[0]} login REGISTRY, if it does not know you" if words[1] == "push" else ""
        raise MachineError(f"{words[0]} {words[1]} ended with {code}", hint=f"its output is above{login}")
