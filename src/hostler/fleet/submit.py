"""From a project and a command to a sweep in the store: the same command twice continues.

Order matters: code and data first, the sweep's spec last, so that whoever sees a sweep can run it. A
submission that is cut off leaves nothing anybody takes for a run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler import env, settings
from hostler.errors import MachineError, MissingError, UsageError
from hostler.fleet import library
from hostler.fleet.snapshot import secrecy, snapshot
from hostler.fleet.snapshot.ignore import OWN_FILE
from hostler.fleet.snapshot.tree import Tree
from hostler.frozen import dataclass
from hostler.records import project as projects
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.spec.job import DataItem, Job, Source, source_facts
from hostler.spec.names import slug
from hostler.spec.project import GitSource, Project
from hostler.spec.script import script_at, startable, suggestion
from hostler.spec.states import DIVERGED, DONE, FAILED, PAUSED, PRUNED, STOPPED
from hostler.store import Store
from hostler.store.registry import check, is_folder

if TYPE_CHECKING:
    from hostler.fleet.function import Packed
    from hostler.records.run.state import RunState


@dataclass(frozen=True)
class Submitted:
    """The outcome of a submission. `how`: new, continues (open already), reopened, done (nothing to do)."""

    job: Job
    how: str
    notes: tuple[str, ...] = ()
    before: int = 0  # the newest attempt of a run that was reopened

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
    job = Job(
        name=slug(title),
        title=title,
        command=startable(command, project.root / cwd),
        style=style,
        resume=project.resume,
        resume_whole=project.resume_whole,
        resume_else=project.resume_else,
        setup=project.setup,
        python=project.python,
        env=dict(project.env),
        secrets=project.secrets,
        metric=project.metric,
        goal=project.goal,
        of=project.of,
        resources=project.resources,
        distributed=project.distributed,
        limits=project.limits,
        checkpoint=project.checkpoint,
        retries=project.retries,
        retries_given=project.retries_given,
        outputs=project.outputs,
        collect=project.collect,
        metrics=project.metrics,
        trackers=project.trackers,
        tags=project.tags,
        notify=project.notify,
        priority=project.priority,
        warm=project.warm,
        cwd=cwd,
        runs=tuple(dict(params) for params in runs),
    )
    secrecy.check(job, project.git.token_secret if project.git else None)
    if style != "flags":
        return job
    from hostler.fleet.option_forms import settled  # words that a person typed stay as they are

    return settled(job, project)


def identity(job: Job) -> str:
    """The identity of a submission: command, parameters, folder. Code belongs to the attempt."""
    what: list[Any] = [list(job.command), job.style, [dict(r) for r in job.runs], job.cwd]
    what += [dict(job.init)] if job.init else []
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:6]


def named(job: Job, given: str | None) -> Job:
    """A name of the person's own, or the title and what makes it the same command."""
    return replace(job, name=slug(given) if given else f"{slug(job.title, 40)}-{identity(job)}")


def open_project(store: Store, project: Project) -> None:
    """The store is there, can be written to, and its project's record is made."""
    check(store, creates=False)
    projects.ensure(store, project.name, projects.timing_of(store.url))


def submit(
    store: Store, project: Project, job: Job, *, again: bool = False, own_name: bool = False
) -> Submitted:
    """Bring code and data along and write the sweep, or find that it is there already."""
    needed = required_files(project, job)
    open_project(store, project)
    source, notes = bring_code(store, project, needed)
    job = replace(job, source=source, data=bring_data(store, project))
    while True:
        known, name = _known(store, job)
        if own_name and known and not any(identity(old) == identity(job) for old in known):
            raise UsageError(
                f"a run named {job.name!r} exists already, with another command",
                hint="choose another --name, or hostler rm the old one",
            )
        same = [old for old in known if identity(old) == identity(job)]
        done = _continued(store, same[-1], job) if same and not again else None
        if done:
            return replace(done, notes=(*done.notes, *notes))
        fresh = replace(job, name=name)
        if sweeps.submit(store, fresh):
            return Submitted(fresh, "new", notes)
        again = False  # another submission of the same was faster: theirs is ours


def bring_code(
    store: Store,
    project: Project,
    needed: Sequence[str] = (),
    leave: Collection[str] = (),
    function: Packed | None = None,
    shape: Callable[[Tree], Tree] = lambda tree: tree,
) -> tuple[Source, tuple[str, ...]]:
    """Today's code of the project, in the store, and hostler itself. `needed`: files it must hold;
    `leave`: files and folders that are none of it; `function`: one that is in no file; `shape` changes it."""
    source, notes = _bring_own(store, project, needed, leave, function, shape)
    return replace(source, library=library.bring(store)), notes


def _bring_own(
    store: Store,
    project: Project,
    needed: Sequence[str],
    leave: Collection[str],
    function: Packed | None,
    shape: Callable[[Tree], Tree],
) -> tuple[Source, tuple[str, ...]]:
    if project.git is not None:
        return _git(project.git), ()
    taken = _taken(store, project, leave, function, shape)
    check_taken(needed, {name for name, _ in taken.files})
    if any(entry.at for entry in project.data.values()):
        from hostler.fleet.snapshot import data  # with uploads that go on where they were cut

        data.check_places(project.data.values(), project.root, {name for name, _ in taken.files})
    secrecy.check_code(project.secrets, project.root, taken.files)
    snapshot.upload(store, replace(taken, diff=secrecy.covered(project.secrets, taken.diff)))
    sha = function.sha if function else None
    return Source(snapshot=taken.sha, commit=taken.commit, dirty=taken.dirty, function=sha), taken.notes


def code_mark(store: Store, project: Project, leave: Collection[str] = ()) -> str:
    """The name today's code would have in the store; nothing is written there."""
    if project.git is not None:
        return _git(project.git).mark
    return _taken(store, project, leave).sha


def _git(code: GitSource) -> Source:
    from hostler.fleet.snapshot import gitref  # few projects take their code from git

    return gitref.source(f"{code.url}@{code.ref}" if code.ref else code.url, code.token_secret)


def _taken(
    store: Store,
    project: Project,
    leave: Collection[str],
    function: Packed | None = None,
    shape: Callable[[Tree], Tree] = lambda tree: tree,
) -> snapshot.Snapshot:
    def bring(tree: Tree) -> Tree:
        """With a function of a notebook, and without the notebooks: to save one changes no code."""
        tree = shape(tree)
        if not function:
            return tree
        nodes = tuple(node for node in tree.nodes if not node.name.endswith(".ipynb"))
        return replace(tree, nodes=nodes).bring(function.file, function.path, function.sha)

    exclude = (*_own_store(store), *(project.root / name for name in leave if name))
    with _writing_to_the_cache():
        return snapshot.take(project.root, settings.sizes(), exclude=exclude, bring=bring)


def bring_data(store: Store, project: Project) -> tuple[DataItem, ...]:
    if not project.data:
        return ()
    from hostler.fleet.snapshot import data  # with uploads that go on where they were cut
    from hostler.fleet.snapshot.progress import Progress

    with _writing_to_the_cache():
        return data.data_items(project.data.values(), project.root, store, env.cache_dir(), watch=Progress)


@contextmanager
def _writing_to_the_cache() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MachineError(
            f"{error.filename or env.cache_dir()}: {error.strerror}",
            hint=f"free space, or fix the rights, in {env.cache_dir()}, or set {env.CACHE} to another folder",
        ) from error


def _own_store(store: Store) -> tuple[Path, ...]:
    """A store inside the project is not part of its code."""
    return (Path(store.url),) if is_folder(store.url) else ()


def _known(store: Store, job: Job) -> tuple[list[Job], str]:
    """Jobs named base, base-2, base-3 … that are not in the trash, and the first such name that is free."""
    names, known, n = set(sweeps.names(store)), list[Job](), 1
    name = job.name
    while name in names:
        old = _load(store, name)
        if old.method or old.run_id(0) not in sweeps.trashed(store, name):
            known.append(old)
        n += 1
        name = f"{job.name}-{n}"
    return known, name


def _load(store: Store, name: str) -> Job:
    try:
        return sweeps.load(store, name)
    except MissingError:
        raise MissingError(
            f"the deletion of {name} was not finished", hint="hostler rm --empty finishes it"
        ) from None


def _continued(store: Store, old: Job, job: Job) -> Submitted | None:
    """The effect of the same command on the run in the store; None: a new run."""
    from hostler.records.run import control  # most submissions are new

    key = RunKey(old.name, old.run_id(0))
    state = control.state_of(store, key)
    ran = sweeps.with_source(old, state).source
    if state.state in (DONE, PRUNED):
        return Submitted(old, "done") if _same_code(ran, job.source) else None
    if state.ended or state.state == PAUSED:
        sweeps.lift(store, old.name)
    if state.state in (STOPPED, PAUSED):
        control.resume(store, key)
        return Submitted(old, "reopened", (_went_on(state),), state.attempt)
    if state.state in (FAILED, DIVERGED):
        _renew(store, old, job)
        control.retry(store, key, source=source_facts(job.source))
        notes = (_went_on(state) + ", with today's code and settings",)
        return Submitted(old, "reopened", notes, state.attempt)
    return Submitted(old, "continues")


def renew(store: Store, project: Project, old: Job) -> None:
    """Today's settings (limits, resources, packages, data …) for a run that is tried again with today's code.

    A sweep of several keeps those of its own submission: others of its runs may be under way.
    """
    if old.count != 1:
        return
    job = draft(project, old.command, title=old.title, style=old.style, runs=old.runs, cwd=old.cwd)
    required_files(project, job)
    _renew(store, old, replace(job, data=bring_data(store, project)))


def _renew(store: Store, old: Job, job: Job) -> None:
    """Its name, tags and first code stay: today's code is in the entry that reopens it."""
    sweeps.revise(store, replace(job, name=old.name, title=old.title, tags=old.tags, source=old.source))


def _same_code(one: Source, other: Source) -> bool:
    return (one.snapshot, one.git, one.ref) == (other.snapshot, other.git, other.ref)


def _went_on(state: RunState) -> str:
    return f"was {state.state}; goes on from its last checkpoint, if it saved one"


# Before submission: the files that a job names exist, its script, its requirements, its setup.


def required_files(project: Project, job: Job) -> list[str]:
    """Files of the project that the job can't do without, by their real names from its root.

    MissingError for one that is not there. Code that machines fetch from git, or that a setup may make,
    is not looked at.
    """
    if project.git is not None:
        return []
    named = [(what, name) for what, name in _named_files(project, job) if "{" not in name]
    found = [_checked_file(project, what, name) for what, name in named]
    return [name for name in found if name]


def check_taken(wanted: Collection[str], taken: Collection[str]) -> None:
    """After the snapshot: what the job needs is in it."""
    for name in wanted:
        if name not in taken:
            raise MissingError(
                f"{name} is not part of the code that is sent", hint=f"is it in .gitignore or {OWN_FILE}?"
            )


def _named_files(project: Project, job: Job) -> Iterator[tuple[str, str]]:
    if job.python.requirements:
        yield "python: requirements", job.python.requirements
    if job.python.conda:
        yield "python: conda", job.python.conda
    at = script_at(job.setup)
    if at is not None:
        yield "setup", os.path.join(job.cwd, job.setup[at])
    at = script_at(job.command)
    if at is not None and not job.setup:
        yield "command", os.path.join(job.cwd, job.command[at])


def _checked_file(project: Project, what: str, name: str) -> str:
    path = project.root / name
    if name.startswith("/") and not os.path.isfile(path):
        return ""  # the machines may have it
    if not os.path.isfile(path):
        near = suggestion(name, project.root) or f"create it, or name another under `{what.split(':')[0]}:`"
        raise MissingError(f"{what}: {name} does not exist in {project.root}", hint=near)
    real, root = os.path.realpath(path), os.path.realpath(project.root)
    return os.path.relpath(real, root) if os.path.commonpath([real, root]) == root else ""
