"""Commands that start workers for waiting runs: a fleet of this project, or a worker here."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hostler.backends.registry import HERE
from hostler.cli import here
from hostler.errors import HostlerError
from hostler.records import layout
from hostler.spec.names import slug
from hostler.spec.project import Project
from hostler.store import Store
from hostler.store.registry import is_folder

if TYPE_CHECKING:
    from hostler.records.rows import Row


def worker_command(store: Store) -> str:
    """`hostler up FLEET` where this folder's project has one for the store; else a worker on this machine."""
    try:
        project = here.project()
        own = here.store_url(None).rstrip("/") == store.url.rstrip("/")
        names = _fleets(project, store) if own else []
    except HostlerError:
        names = []
    if not names:
        return shlex.join(["hostler", "worker", store.url])
    others = f" (or {', '.join(names[1:])})" if names[1:] else ""
    return f"{shlex.join(['hostler', 'up', names[0]])}{others}"


def _fleets(project: Project, store: Store) -> list[str]:
    """The project's own choice; else fleets that have worked for this store; else all that could."""
    if project.fleet in project.fleets:
        return [str(project.fleet)]
    rows = store.list(layout.FLEETS, deep=False)
    known = {row.key.removeprefix(layout.FLEETS).strip("/") for row in rows}
    used = [name for name in project.fleets if slug(name) in known]
    if used or is_folder(store.url):
        return used
    return [name for name, fleet in project.fleets.items() if fleet.backend != HERE]


# Of runs whose workers have not all come: for whom they wait, in words.


def lines(store: Store, found: Sequence[Row]) -> Iterator[str]:
    """A line for each run whose workers are still coming."""
    from hostler.records.run import heartbeats  # all three only for gangs that form
    from hostler.records.run.gang import Gang
    from hostler.worker.gang import missing

    forming = [row for row in found if row.forming]
    sessions = heartbeats.etags(store) if forming else ()
    beats = {one: beat for one in sessions if (beat := heartbeats.read(store, one)) is not None}
    for row in forming:
        seen = Gang(store, row.id, row.claim).look()
        told = missing.who(seen, beats, row.session or "", row.sweep)
        yield f"{row.name}: {row.forming} workers have come: {told}"
