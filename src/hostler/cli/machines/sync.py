"""`hostler sync`: the project's folder on another machine, while you edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from hostler import env
from hostler.cli import here
from hostler.cli.machines.hosts import host_of
from hostler.errors import HostUnreachable, MachineError
from hostler.fleet.snapshot.mirror import Mirror, Pushed
from hostler.remote.target import SshTarget
from hostler.spec.names import slug
from hostler.spec.project import Project
from hostler.store.registry import is_folder

LOOK = 3000  # milliseconds after which it is looked at in any case: the far side may have changed
DEBOUNCE = 50  # milliseconds of quiet after which what was saved is sent


def command(host: str | None, to: str | None, once: bool, force: bool) -> int:
    """Keep a copy of this project on a machine of a fleet, until Ctrl-C."""
    project = here.project()
    target = host_of(project, host)
    place = to or place_of(project)
    mirror = mirror_of(project, target, place)
    try:
        _tell(mirror.push(force=force), f"{target}:{place}")
        for _ in () if once else _changes(project.root):
            try:
                pushed = mirror.push(force=True)
            except HostUnreachable as error:
                click.echo(f"hostler: {error}; the next save tries again", err=True)
                continue
            if pushed.sent or pushed.removed:
                _tell(pushed, f"{target}:{place}")
    except KeyboardInterrupt:
        return 0
    finally:
        mirror.close()
    return 0


def place_of(project: Project) -> str:
    return f"~/hostler/{slug(project.name)}"


def mirror_of(project: Project, target: SshTarget, place: str) -> Mirror:
    """The mirror of a project; a store inside it is left out, as it is not code."""
    own = (Path(project.store),) if is_folder(project.store) else ()
    return Mirror(project.root, target, place, env.cache_dir(), own)


def _changes(root: Path) -> Iterator[object]:
    try:
        from watchfiles import watch
    except ModuleNotFoundError:
        raise MachineError(
            "syncing while you edit needs the package watchfiles", "pip install 'hostler[sync]', or --once"
        ) from None
    click.echo("hostler: watching; Ctrl-C ends it", err=True)
    yield from watch(
        root,
        watch_filter=None,
        debounce=DEBOUNCE * 4,
        step=DEBOUNCE,
        rust_timeout=LOOK,
        yield_on_timeout=True,
        raise_interrupt=True,
    )


def _tell(pushed: Pushed, where: str) -> None:
    what = (
        f"{pushed.sent} sent, {pushed.removed} deleted"
        if pushed.sent or pushed.removed
        else "nothing changed"
    )
    click.echo(f"{where}: {what} ({pushed.seconds:.2f} s)")
