"""`hostler image`: images for fleets: of VMs, in families; of containers, by docker."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from hostler.cli import here
from hostler.cli.machines import image_cloud
from hostler.cli.machines.image_cloud import ImageOptions, Site
from hostler.errors import MachineError, UsageError
from hostler.spec.project import Project


def build(
    family: str | None,
    script: Path | None,
    requirements: bool,
    base: str | None,
    from_project: str | None,
    from_vm: str | None,
    timeout: str,
    on: str | None,
    project: str | None,
    zone: tuple[str, ...],
    machine: str | None,
    gpu: str | None,
    disk: str | None,
    docker: bool,
    tag: str | None,
    docker_base: str | None,
    push: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Make an image. A script that fails or hangs publishes nothing; the VM is gone in every case."""
    if docker:
        if family or script or from_vm:
            raise UsageError(
                "--docker cannot be combined with --family, --script or --from-vm",
                hint="leave --docker out, or the others",
            )
        return build_docker(tag, docker_base or BASE, push=push)
    if family is None:
        raise UsageError(
            "the kind of image is not given",
            hint="--family NAME: for VMs of Compute Engine; --docker: a container image for Kubernetes",
        )
    options = ImageOptions(
        family, script, requirements, base, from_project, from_vm, timeout, machine, gpu, disk
    )
    return image_cloud.build(options, Site(on, project, zone), yes=yes, as_json=as_json)


def list_(
    family: str | None, on: str | None, project: str | None, zone: tuple[str, ...], as_json: bool
) -> int:
    """List images that hostler made, or all of a family; * is what the family means now."""
    return image_cloud.show(family or "", Site(on, project, zone), as_json=as_json)


def delete(
    family: str, keep: int, on: str | None, project: str | None, zone: tuple[str, ...], yes: bool
) -> int:
    """Delete the old images of a family, after asking; what hostler did not make stays."""
    return image_cloud.delete(family, keep, Site(on, project, zone), yes=yes)


# `hostler image build --docker`: an image with a project's packages, for workers that are containers.


PROGRAMS = ("docker", "podman")
FILE = "Dockerfile"
BASE = "python:3.12-slim"
HEAD = "# Written by hostler image build --docker; yours to change: it is written again only if it is gone."


def build_docker(tag: str | None, base: str, *, push: bool) -> int:
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
            file.write(_dockerfile(project, base))
        click.echo(f"hostler: {path.name} is written", err=True)
    except FileExistsError:
        click.echo(f"hostler: {path.name} exists already and is used as it is", err=True)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from None
    return path


def _run(words: Sequence[str]) -> None:
    code = subprocess.run(words).returncode
    if code:
        login = f"; {words[0]} login REGISTRY, if it needs a login" if words[1] == "push" else ""
        raise MachineError(f"{words[0]} {words[1]} ended with {code}", hint=f"its output is above{login}")


def _dockerfile(project: Project, base: str) -> str:
    """The project's packages, and nothing of its code, which comes with each run. hostler itself need not be
    in it: it is brought into any image that has Python. Pure."""
    lines = [HEAD, f"FROM {base}", "ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1"]
    wanted = project.python.requirements
    if wanted:
        lines += ["WORKDIR /build", f'COPY ["{wanted}", "requirements.txt"]']
        lines += ["RUN pip install --no-cache-dir -r requirements.txt"]
    return "\n".join([*lines, "WORKDIR /work", ""])
