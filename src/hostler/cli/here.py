"""What the current folder means: its project and its store; options that every verb shares."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import click

from hostler import env
from hostler.fleet.patience import open_at as open_at
from hostler.spec.place import find_project
from hostler.spec.project import Project, default_project
from hostler.store import Store

F = TypeVar("F", bound=Callable[..., Any])


def store_option(function: F) -> F:
    return click.option(
        "--store",
        "store_url",
        metavar="URL",
        help="Folder or bucket (default: hostler.yaml's, else .hostler).",
    )(function)


def init_from_option(function: F) -> F:
    return click.option(
        "--init-from",
        metavar="RUN|PATH|URL",
        help="What to begin from, found at $HOSTLER_DATA/init: a run's checkpoint, a sweep's best, a file.",
    )(function)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(function)


def yes_option(function: F) -> F:
    return click.option("-y", "--yes", is_flag=True, help="Don't ask.")(function)


@lru_cache
def project() -> Project:
    """The project of this folder: its file's, or the default one."""
    path = find_project(Path.cwd())
    if path is None:
        return default_project(Path.cwd())
    from hostler.backends.project_file import load_project

    return load_project(path)


def store_url(given: str | None, of: Project | None = None) -> str:
    """The store's address; `of` is the project where it is not this folder's own."""
    return given or env.store_url() or (of or project()).store


def open_here(given: str | None) -> Store:
    return open_at(store_url(given))
