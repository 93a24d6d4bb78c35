"""The project and the store of the current folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from hostler import env
from hostler.spec.project import Project, default_project, find_project
from hostler.store import Store, registry


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


def open_at(url: str) -> Store:
    """The store, once it has what dead scripts left for it on this machine."""
    store = registry.open_at(url)
    deliver_left(store)
    return store


def deliver_left(store: Store, say: Callable[[str], None] | None = None) -> None:
    """Deliver what scripts by hand that died on this machine left; where there are none this is one look."""
    folders = env.script_folders()
    if folders:
        from hostler.attempt import dead_scripts  # most machines have no script by hand
        from hostler.cli.terminal import output

        dead_scripts.deliver(store, say or output.saying(), folders)


def open_here(given: str | None) -> Store:
    return open_at(store_url(given))
