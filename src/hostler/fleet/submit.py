"""From a project and a command to a sweep in the store: the same command twice continues.

Order matters: code and data first, the sweep's spec last, so that whoever sees a sweep can run it. A
submission that is cut off leaves nothing anybody takes for a run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hostler import env, settings
from hostler.errors import UsageError
from hostler.fleet import data, gitref, snapshot
from hostler.records import control, sweeps
from hostler.records import project as projects
from hostler.records.log import RunKey
from hostler.records.state import DIVERGED, DONE, FAILED, PAUSED, PRUNED, STOPPED, RunState
from hostler.spec.job import DataItem, Job, Source
from hostler.spec.names import slug
from hostler.spec.project import Project
from hostler.store import Store
from hostler.store.mount import is_network
from hostler.store.registry import check, is_folder


@dataclass(frozen=True)
class Submitted:
    """What became of a submission. `how`: new, continues (open already), reopened, done (nothing to do)."""

    job: Job
    how: str
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> RunKey:
        return RunKey(self.job.name, self.job.run_id(0))


def draft(
    project: Project,
    command: Sequence[str],
    *,
    title: str,
    style: str,
    runs: Sequence[Mapping[str, Any]],
    cwd: str = "",
) -> Job:
    """The job a project and a command make, before code and data are brought along."""
    return Job(
        name=slug(title),
        title=title,
        command=tuple(command),
        style=style,
        resume=project.resume,
        resume_whole=project.resume_whole,
        setup=project.setup,
        python=project.python,
        env=dict(project.env),
        secrets=project.secrets,
        metric=project.metric,
        goal=project.goal,
        resources=project.resources,
        limits=project.limits,
        checkpoint=project.checkpoint,
        retries=project.retries,
        outputs=project.outputs,
        metrics=project.metrics,
        trackers=project.trackers,
        tags=project.tags,
        priority=project.priority,
        cwd=cwd,
        runs=tuple(dict(params) for params in runs),
    )


def identity(job: Job) -> str:
    """What makes two submissions the same: command, parameters, folder. Code belongs to the attempt."""
    what = [list(job.command), job.style, [dict(r) for r in job.runs], job.cwd]
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:6]


def named(job: Job, given: str | None) -> Job:
    """A name of the person's own, or the title and what makes it the same command."""
    return replace(job, name=slug(given) if given else f"{slug(job.title, 40)}-{identity(job)}")


def open_project(store: Store, project: Project) -> None:
    """The store is there, can be written to, and its project's record is made."""
    check(store)
    projects.ensure(store, project.name, timing_of(store.url))


def timing_of(url: str) -> settings.Timing:
    """Beat and lease by what kind of store it is: one machine, a network file system, a bucket."""
    if not is_folder(url):
        return settings.timing()
    if is_network(Path(url)):
        return replace(settings.timing(), **settings.network_folder())
    return settings.timing(one_machine=True)


def submit(
    store: Store, project: Project, job: Job, *, again: bool = False, own_name: bool = False
) -> Submitted:
    """Bring code and data along and write the sweep, or find that it is there already."""
    open_project(store, project)
    source, notes = bring_code(store, project)
    job = replace(job, source=source, data=bring_data(store, project))
    newest, n = _newest(store, job.name)
    while True:
        if newest is not None and not again:
            if own_name and identity(newest) != identity(job):
                raise UsageError(
                    f"there is another run named {job.name!r}, with another command",
                    hint="choose another --name, or hostler rm the old one",
                )
            known = _continued(store, newest, job)
            if known:
                return replace(known, notes=(*known.notes, *notes))
        fresh = replace(job, name=job.name if n == 0 else f"{job.name}-{n + 1}")
        if sweeps.submit(store, fresh):
            return Submitted(fresh, "new", notes)
        newest, n, again = sweeps.load(store, fresh.name), n + 1, False


def bring_code(store: Store, project: Project) -> tuple[Source, tuple[str, ...]]:
    if project.git is not None:
        where = f"{project.git.url}@{project.git.ref}" if project.git.ref else project.git.url
        return gitref.source(where, project.git.token_secret), ()
    taken = snapshot.take(project.root, settings.sizes(), exclude=_own_store(store))
    snapshot.upload(store, taken)
    return Source(snapshot=taken.sha, commit=taken.commit, dirty=taken.dirty), taken.notes


def bring_data(store: Store, project: Project) -> tuple[DataItem, ...]:
    return data.data_items(project.data.values(), project.root, store, env.cache_dir())


def _own_store(store: Store) -> tuple[Path, ...]:
    """A store inside the project is not part of its code."""
    return (Path(store.url),) if is_folder(store.url) else ()


def _newest(store: Store, base: str) -> tuple[Job | None, int]:
    """The latest of base, base-2, base-3 …, and its number; (None, 0) if there is none."""
    names = set(sweeps.names(store))
    n = 0
    while (base if n == 0 else f"{base}-{n + 1}") in names:
        n += 1
    if n == 0:
        return None, 0
    return sweeps.load(store, base if n == 1 else f"{base}-{n}"), n


def _continued(store: Store, old: Job, job: Job) -> Submitted | None:
    """What the same command means for the run that is there; None: a new one."""
    key = RunKey(old.name, old.run_id(0))
    state = control.state_of(store, key)
    ran = sweeps.with_source(old, state.reopened).source
    if state.state in (DONE, PRUNED):
        return Submitted(old, "done") if ran.snapshot == job.source.snapshot else None
    if state.state in (STOPPED, PAUSED):
        control.resume(store, key)
        return Submitted(old, "reopened", (_went_on(state),))
    if state.state in (FAILED, DIVERGED):
        control.retry(store, key, source=asdict(job.source))
        return Submitted(old, "reopened", (_went_on(state) + ", with today's code",))
    return Submitted(old, "continues")


def _went_on(state: RunState) -> str:
    return f"was {state.state}; goes on from its last checkpoint, if it saved one"
