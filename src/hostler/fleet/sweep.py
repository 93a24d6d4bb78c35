"""From a sweep file to a sweep in the store: new, or another round of the one that is there.

Code and data first, the spec last; however many runs there are, what is written is the same few objects.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hostler import settings
from hostler.errors import UsageError
from hostler.fleet import again, edit
from hostler.fleet.edit import Edit
from hostler.fleet.option_forms import settled
from hostler.fleet.snapshot import secrecy
from hostler.fleet.snapshot.tree import Tree
from hostler.fleet.submit import bring_code, bring_data, draft, open_project, required_files
from hostler.frozen import dataclass
from hostler.records.launch import serving
from hostler.records.run import log, upstream
from hostler.records.sweep import sweeps
from hostler.spec import space, spans
from hostler.spec.files import searchable
from hostler.spec.files.sweepfile import SweepFile
from hostler.spec.job import Job
from hostler.spec.methods import LEARNING, check_installed
from hostler.spec.names import slug, sweep_name
from hostler.spec.rounds import Round
from hostler.spec.script import NOTEBOOK_MODULE, check_notebook, script_at
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.fleet.function import Packed


@dataclass(frozen=True)
class Swept:
    """The outcome of a submission: `version` is the number of the round's spec, 0 if nothing changed."""

    edit: Edit
    version: int
    notes: tuple[str, ...] = ()

    @property
    def job(self) -> Job:
        return self.edit.job


def draft_sweep(file: SweepFile, calls: space.Listed | None = None) -> Job:
    """The job a file makes, before code and data are brought along. `calls`: its runs, one by one."""
    searchable.check(file.method, file.objectives, file.prune, file.budget, file.where)
    check_installed(file.method)
    command = file.project.command or ()
    job = draft(
        file.project,
        command,
        title=file.name,
        style=file.project.style,
        runs=(),
        cwd=_working_folder(file, command),
    )
    job = replace(
        job,
        name=sweep_name(file.name),
        file=_own_file(file, [*command, *job.setup, *job.resume]),
        method=file.method,
        seed=file.seed,
        objectives=file.objectives,
        prune=file.prune,
        budget=file.budget,
        parallel=file.parallel,
        auto=file.auto,
    )
    secrecy.check_parameters(job, [file.parameters, file.sections, *(calls.given if calls else ())])
    found = calls or read_space(file)
    if file.method in LEARNING and isinstance(found, space.Space):
        return settled(replace(job, search=space.to_json(found)), file.project)
    job = replace(job, rounds=(Round(found, spans.whole(found.count), job.command),))
    if job.count and NOTEBOOK_MODULE in job.command:
        given = [key for key in job.params(0) if not any(f"{{{key}}}" in word for word in job.command)]
        check_notebook([*job.command, *(f"--{key}=0" for key in given)], file.project.root / job.cwd)
    return settled(job, file.project)


def as_stored(store: Store, job: Job) -> Job:
    """The job by the name of its sweep in the store: earlier versions kept no capitals in names."""
    older = slug(job.title)
    if older == job.name or sweeps.is_there(store, job.name) or not sweeps.is_there(store, older):
        return job
    return replace(job, name=older)


def read_space(file: SweepFile) -> space.Space:
    """The space of the file's parameters; a SpecError with the file's line where they make none."""
    return space.parse(
        file.parameters,
        method=file.method,
        repeat=file.repeat,
        runs=None if file.method in LEARNING else file.budget.runs,  # a search may be given more later
        seed=file.seed,
        sections=file.sections,
        where=file.where,
    )


def current(store: Store, job: Job) -> tuple[Job, int] | None:
    """The sweep of this name as it is, and the number of its spec; None if there is none."""
    if not sweeps.is_there(store, job.name):
        return None
    old, version = sweeps.load_version(store, job.name)
    if not old.method or not (old.rounds or old.search):
        raise UsageError(
            f"{job.name!r} exists already, as a run and not as a sweep",
            hint="give the sweep another name",
        )
    return old, version


def edited(store: Store, old: Job | None, job: Job, *, anew: bool = False) -> Edit:
    """The change that the file makes to the sweep in the store. `anew`: in place of it."""
    if old is None:
        return edit.first(job)
    if anew and learns(old, job):
        return edit.instead(old, job, started(store, old.name))
    if old.search and not old.runs and not job.search:
        old = edit.written_down(old)  # it has chosen nothing yet
    elif learns(old, job):
        return edit.searched(old, job)
    return edit.edit(old, job, started(store, old.name), trashed(store, old.name), anew=anew)


def learns(*jobs: Job) -> bool:
    """Whether the runs of one of these are those of a journal."""
    return any(job.method in LEARNING for job in jobs)


def started(store: Store, name: str) -> set[int]:
    """Indices of the runs that somebody has had."""
    return set(map(log.index_of, log.heads(store, name)))


def trashed(store: Store, name: str) -> set[int]:
    return set(map(log.index_of, sweeps.trashed(store, name)))


def submit_sweep(
    store: Store,
    file: SweepFile,
    job: Job,
    *,
    anew: bool = False,
    failed: bool = False,
    function: Packed | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Swept:
    """Bring code and data along and write the round, unless there is nothing new in it. `anew`: in place of
    what is there, which goes to the trash; with `failed` only if nothing of it succeeded. `function`: what
    it runs, if that is in no file. Once it has returned, nobody starts a run that it dropped."""
    upstream.check(store, job)
    needed = required_files(file.project, job)
    open_project(store, file.project)
    source, notes = bring_code(store, file.project, needed, leave=[job.file], function=function)
    job = replace(job, source=source, data=bring_data(store, file.project))
    if anew and sweeps.is_there(store, job.name):
        again.put_away(store, job.name, pause, failed=failed)
    done = _write(store, job, anew=anew)
    if done.edit.dropped and serving.look(store).serves(done.job.name):
        pause(again.SETTLE * settings.timing().fresh)  # by then nobody goes by the round before
        done = _corrected(done, _write(store, job))
    return replace(done, notes=notes)


def submit_calls(
    store: Store,
    file: SweepFile,
    job: Job,
    *,
    function: Packed | None = None,
    leave: Collection[str] = (),
    shape: Callable[[Tree], Tree],
    mark: str = "",
    check: Callable[[Edit], None] = lambda found: None,
) -> Swept:
    """Add calls of a function, the runs of `job`, to the sweep of this function and code. `leave`: what of
    the project's folder is not code; `shape` changes what is. `mark` tells it from equal code. `check` may
    refuse the calls before they are written."""
    upstream.check(store, job)
    needed = required_files(file.project, job)
    open_project(store, file.project)
    source, notes = bring_code(store, file.project, needed, leave=leave, function=function, shape=shape)
    digest = hashlib.sha256(f"{source.mark} {mark}".encode()).hexdigest()
    job = replace(job, name=slug(f"{job.name}-{digest[:8]}"), title=job.title)
    job = replace(job, source=source, data=bring_data(store, file.project))
    return replace(_write(store, job, adds=True, check=check), notes=notes)


def _write(
    store: Store,
    job: Job,
    *,
    anew: bool = False,
    adds: bool = False,
    check: Callable[[Edit], None] = lambda found: None,
) -> Swept:
    while True:
        found = current(store, job)
        old, version = found or (None, 0)
        if adds and old is not None:
            what = edit.added(old, job, trashed(store, old.name))
        else:
            what = edited(store, old, job, anew=anew)
        if old is not None and sweeps.same(old, what.job):
            return Swept(what, 0)
        check(what)
        if sweeps.submit(store, what.job, version + 1):
            return Swept(what, version + 1)


def _corrected(done: Swept, later: Swept) -> Swept:
    """The edit without dropping runs that workers took while the round was written."""
    job = later.job
    dropped = spans.of(i for i in done.edit.dropped if i in job.dropped)
    what = replace(done.edit, job=job, dropped=dropped, left=later.edit.left)
    return Swept(what, later.version or done.version)


def _own_file(file: SweepFile, words: Sequence[str]) -> str:
    """The file as seen from the project's root, if it is in there and no command reads it."""
    name = os.path.relpath(os.path.realpath(file.path), os.path.realpath(file.project.root))
    return "" if name.startswith("..") or any(file.path.name in word for word in words) else name


def _working_folder(file: SweepFile, command: Sequence[str]) -> str:
    """Where the command's script is: the project's folder, or the sweep file's if it is only there."""
    root, folder, at = file.project.root, file.path.parent, script_at(command)
    beside = os.path.relpath(folder, root)
    if at is None or beside == "." or beside.startswith("..") or os.path.isfile(root / command[at]):
        return ""
    return beside if os.path.isfile(folder / command[at]) else ""
