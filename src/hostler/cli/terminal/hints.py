"""Hints on runs that wait: whether a worker takes them, the command that starts one, who has not come yet."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from hostler.backends.registry import HERE, this_machine
from hostler.cli import here
from hostler.cli.terminal.table import need_a_worker
from hostler.errors import HostlerError
from hostler.records import layout
from hostler.records.launch import serving
from hostler.records.sweep import sweeps
from hostler.spec.names import slug
from hostler.spec.project import Project
from hostler.spec.states import QUEUED
from hostler.spec.units import counted
from hostler.store import Store
from hostler.store.registry import is_folder

if TYPE_CHECKING:
    from hostler.cli.terminal.output import Say
    from hostler.records.rows import Row


def nobody(store: Store, found: Sequence[Row], say: Say | None = None) -> str:
    """A hint if runs wait and no living worker takes them; '' if one does or is about to, or if their sweep
    is halted."""
    waiting = need_a_worker(found)
    if not waiting:
        return ""
    alone = set(unserved(store, {row.sweep for row in waiting}, say))
    alone -= {sweep for sweep in alone if sweeps.why_halted(store, sweep, say)}
    rows = [row for row in waiting if row.sweep in alone and not row.by_hand]
    if not rows:
        own = sum(row.by_hand for row in waiting)
        return f"{own} of scripts started by hand: each goes on when it is started again" if own else ""
    kinds = {"queued" if row.state == QUEUED else "lost" for row in rows}
    what = counted(len(rows), f"{' or '.join(sorted(kinds, reverse=True))} run")
    return f"nobody works on {what}: {worker_command(store)}"


def died(store: Store, found: Iterable[Row]) -> list[str]:
    """A line for each run whose script by hand is dead, with the command that goes on with it."""
    return [
        f"{row.name}: its script died on {row.host}; started again, it goes on: "
        f"{shlex.join(sweeps.load(store, row.sweep).command)}"
        for row in found
        if row.lost
    ]


def unserved(store: Store, names: Iterable[str], say: Say | None = None) -> list[str]:
    """Sweeps that no living worker takes, nor one that is about to start on this machine."""
    now = serving.look(store, say)
    return [name for name in names if not now.serves(name) and not this_machine().starting(store.url, name)]


def command_for(store: Store, sweep: str) -> str:
    """What goes on with its runs: the script itself where a person started it by hand, else a worker."""
    job, _ = sweeps.load_spec(store, sweep)
    return shlex.join(job.command) if job.by_hand else worker_command(store)


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


def lines(store: Store, found: Sequence[Row]) -> Iterator[str]:
    """A line for each run whose workers are still coming."""
    from hostler.records.run import heartbeats  # all three only for gangs that form
    from hostler.records.run.gang import Gang
    from hostler.worker.gang import missing

    forming = [row for row in found if row.forming]
    sessions = heartbeats.etags(store) if forming else ()
    beats = {session: beat for session in sessions if (beat := heartbeats.read(store, session)) is not None}
    for row in forming:
        gang_view = Gang(store, row.id, row.claim).look()
        nodes = int(row.forming.rpartition(" ")[2])
        text = missing.who(gang_view, beats, row.session or "", row.sweep, nodes)
        yield f"{row.name}: {row.forming} workers have joined: {text}"
