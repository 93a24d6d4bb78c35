"""Reads what goes on an image from files, a script and the project's packages; refuses secrets."""

from __future__ import annotations

import os
from pathlib import Path

from hostler import env
from hostler.backends.images import Recipe
from hostler.errors import UsageError
from hostler.spec.formats import withheld
from hostler.spec.project import Project
from hostler.worker.prepare import requirements

SHORTEST = 6  # letters of a secret that is looked for: shorter ones are in every text


def recipe(
    project: Project, family: str, *, script: Path | None, packages: bool, vm: str, seconds: float
) -> Recipe:
    """`packages`: those of the project's requirements file."""
    name = project.python.requirements if packages else None
    if packages and not name:
        raise UsageError(
            "nothing was named to put on the image",
            hint="--script setup.sh, or `python: {requirements: requirements.txt}` in hostler.yaml",
        )
    text = _script(script) if script else ""
    files, wishes = _packages(project, name) if name else ({}, "")
    for what, content in [(str(script), text), *files.items()]:
        _check_secrets(project, what, content)
    return Recipe(
        family, text, script.name if script else "", name or "", files, wishes, vm=vm, seconds=seconds
    )


def doubts(recipe: Recipe) -> list[str]:
    """A line for each place in a VM's script or files that looks like a secret."""
    named = [(recipe.script_name, recipe.script), *recipe.files.items()]
    return [
        f"{what} seems to hold a secret ({where}): all who see the cloud project could read it there"
        for what, text in named
        for where in dict.fromkeys(withheld.withhold(text).names.values())
    ]


def _script(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist", hint="--script names a file of shell commands") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text", hint="--script takes a script, in UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="--script names a file") from None
    if "\0" in text:
        raise UsageError(f"{path} is not text", hint="--script takes a script, in UTF-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    if not lines:
        raise UsageError(f"{path} has no command in it", hint="add commands, or use the base image itself")
    return text.replace("\r\n", "\n")


def _packages(project: Project, name: str) -> tuple[dict[str, str], str]:
    path = project.root / name
    if not path.is_file():
        raise UsageError(
            f"{name}, named by `python: {{requirements}}`, does not exist", hint="write it first"
        )
    package_requirements = requirements.read(path)
    if package_requirements.local:
        raise UsageError(
            f"{name} names things of the project itself, which come with each run",
            hint="leave those lines out, or use --script",
        )
    root = project.root.resolve()
    files = {os.path.relpath(file.resolve(), root): text for file, text in requirements.files(path).items()}
    outside = [one for one in files if one.startswith("..")]
    if outside:
        raise UsageError(f"{name} includes {outside[0]}, which is outside the project", hint="move it inside")
    return files, package_requirements.text.decode("utf-8", "surrogateescape")


def _check_secrets(project: Project, what: str, text: str) -> None:
    """Refuse a secret in a VM's script: all who see the cloud project may read it."""
    for name in project.secrets:
        value = env.inherited().get(name, "")
        if len(value) >= SHORTEST and value in text:
            raise UsageError(
                f"{what} holds the value of {name}, which all who see the cloud project could read there",
                hint="fetch it inside the script, from Secret Manager or a private bucket",
            )
