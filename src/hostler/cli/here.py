"""The project and the store of the current folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import click

from hostler import env
from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records.packs import packed_store
from hostler.spec.project import Project, default_project, find_project
from hostler.store import Store


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
    store = packed_store.open_at(url)
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
    """The store for a verb that reads or steers runs. One that is named with `--store` must be there."""
    url = store_url(given)
    store = open_at(url)
    if given:
        _check_there(store)
    elif project.cache_info().currsize and (age := project().pack):  # read already, to find the store
        from hostler.records.packs import due  # most projects have no such key

        due.begin(url, age)
    return store


def _check_there(store: Store) -> None:
    from hostler.records import layout  # most commands name no store
    from hostler.records.sweep import sweeps

    if not any(store.list(layout.PROJECT)) and not sweeps.names(store):
        raise MissingError(
            f"{store.url} is not a hostler store", hint="check --store; without it, the project's is used"
        )


def named_or_newest(
    store: Store, names: Sequence[str], *, swept: bool = False, or_before: bool = False
) -> tuple[str, ...]:
    """The names a person typed; without any, the newest sweep, which standard error names. `swept`: of a
    sweep file, rather than a single run. `or_before`: if that cannot be read, say so and take the one before
    it; else it is an error, for verbs that change or wait for what they are given."""
    if names:
        return tuple(names)
    from hostler.records.run import resolve

    left_out: list[str] = []
    say = left_out.append if or_before else None
    try:
        newest = resolve.newest(store, swept=swept, say=say) or resolve.newest(store, say=say)
    except (DamagedError, NewerFormatError) as error:
        verb = click.get_current_context().info_name
        hint = f"{error.hint}; name the sweep you mean: hostler {verb} SWEEP"
        raise type(error)(f"the newest sweep cannot be read: {error.message}", hint) from None
    for line in dict.fromkeys(left_out):
        click.echo(f"hostler: {line}", err=True)
    if newest is None:
        what, start = ("sweeps", "hostler sweep sweep.yaml") if swept else ("runs", "hostler run train.py")
        there = f"no sweep can be read in {store.url}" if left_out else f"no {what} yet in {store.url}"
        raise MissingError(there, hint=f"{start} starts one")
    others = " that can be read" if left_out else ""
    click.echo(f"hostler: the newest sweep{others} is {newest}", err=True)
    return (newest,)
