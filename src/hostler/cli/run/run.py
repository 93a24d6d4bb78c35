"""`hostler run`: submit one run, start a worker for it, follow it to its end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hostler.cli import here
from hostler.cli.run import pricing
from hostler.cli.run.pricing import Outlay
from hostler.cli.terminal.follow import follow
from hostler.errors import UsageError
from hostler.fleet.launcher import Launcher, launcher
from hostler.fleet.submit import Submitted, draft, named, submit
from hostler.records.sweep import sweeps
from hostler.spec.argv import command_for, params_of, with_params
from hostler.spec.job import Job
from hostler.spec.params import merge, parse_pairs
from hostler.spec.project import Project
from hostler.spec.script import in_project
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.backends.base import WorkerInfo


def command(
    words: tuple[str, ...],
    on: str | None,
    name: str | None,
    like: str | None,
    init_from: str | None,
    again: bool,
    detach: bool,
    tags: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Run a script, streaming what it prints; returns the script's exit code."""
    project = here.project()
    url = here.store_url(store_url)
    if name is not None and not name.strip():
        raise UsageError("--name is empty", hint="--name baseline, or leave it out")
    workers = launcher(project, url, on)
    store = here.open_at(url)
    job = _job(project, store, words, like)
    if init_from:
        from hostler.fleet.init_from import begin_from  # with the spaces of sweep files

        job, project = begin_from(init_from, job, project, store)
    job = named(job, name)
    job = replace(job, tags=(*job.tags, *tags))
    workers = workers.prepared(store)
    costs = pricing.outlay(store, workers, [job], 1, settle=not dry_run)
    if dry_run:
        return _show(workers, job, costs)
    _check_secrets(project, job)
    if not pricing.agreed(costs, yes=yes):
        click.echo("hostler: nothing was submitted", err=True)
        return 1
    done = submit(store, project, job, again=again, own_name=name is not None)
    _announce(done, quiet=as_json)
    if done.how != "done":
        return _start(store, workers, done, detach=detach, as_json=as_json)
    if as_json:
        _print_row(store, done)
    return 0


def _show(workers: Launcher, job: Job, costs: Outlay) -> int:
    """Print the plan and its price; nothing is submitted."""
    from hostler.fleet import option_forms

    plan = workers.plan([job.name], runs=1, funded=costs.funded, hidden=workers.hidden([job]))
    click.echo("\n".join([*option_forms.lines(job), *pricing.lines(costs), plan.text]))
    return 0


def _start(store: Store, workers: Launcher, done: Submitted, *, detach: bool, as_json: bool) -> int:
    """Start a worker for the run, and follow it to its end, unless it is left in the background."""

    def start(*, new: bool = False) -> Sequence[WorkerInfo]:
        return workers.start_missing([done.job.name], runs=1, new=new, jobs=[done.job])

    started = start(new=done.how == "new")
    if detach:
        _next_commands(store, done, as_json)
        return 0
    return follow(
        store,
        done.key,
        workers.engine,
        workers.fleet,
        started,
        start,
        later_than=done.before,
        as_json=as_json,
        raw=done.how != "continues",
    )


def _job(project: Project, store: Store, words: tuple[str, ...], like: str | None) -> Job:
    if like:
        return _like(project, store, like, words)
    cwd = os.path.relpath(Path.cwd(), project.root)
    folder = "" if cwd == "." else cwd
    if not words or ("=" in words[0] and not os.path.exists(words[0])):
        return _from_project(project, words, folder)
    argv, note = in_project(command_for(words, Path.cwd()), Path.cwd(), project.root)
    if note:
        click.echo(f"hostler: {note}", err=True)
    title = Path(words[0]).stem or words[0]
    return draft(project, argv, title=title, style="none", runs=[params_of(argv)], cwd=folder)


def _from_project(project: Project, words: tuple[str, ...], folder: str) -> Job:
    if project.command is None:
        raise UsageError(
            "nothing to run: no script was named and no hostler.yaml has a command",
            hint="hostler run train.py --lr 0.1, or hostler init",
        )
    params = parse_pairs(words)
    return draft(project, project.command, title=project.name, style=project.style, runs=[params], cwd=folder)


def _like(project: Project, store: Store, word: str, words: tuple[str, ...]) -> Job:
    """An earlier run's job with other parameters: in its words, where those were verbatim."""
    from hostler.fleet import option_forms
    from hostler.records.run import resolve

    key = resolve.run(store, word)
    old = sweeps.load(store, key.sweep)
    changes: dict[str, Any] = parse_pairs(words)
    params = merge(old.params(key.index), changes)
    new = replace(old, runs=(params,), title=old.title or old.name)
    if old.style != "none":
        return option_forms.settled(new, project)
    forms = option_forms.declared_style(old, project, changes)
    return replace(new, command=with_params(old.command, changes, forms))


def _check_secrets(project: Project, job: Job) -> None:
    token = project.git.token_secret if project.git else None
    names = [*job.secrets, *([token] if token else [])]
    if names or job.notify.to:
        from hostler.fleet.secrets import check_secrets, check_told  # most runs have none

        check_secrets(names)
        check_told(job.notify.to)


def _announce(done: Submitted, *, quiet: bool) -> None:
    for note in done.notes:
        click.echo(f"hostler: {note}", err=True)
    said = {
        "new": f"hostler: {done.job.name}",
        "continues": f"hostler: {done.job.name} is under way already; following it",
        "reopened": f"hostler: {done.job.name} continues",
        "done": f"hostler: {done.job.name} is done already; --again runs it again, "
        f"hostler show {done.job.name} shows it",
    }
    if not quiet:
        click.echo(said[done.how], err=True)


def _next_commands(store: Store, done: Submitted, as_json: bool) -> None:
    if as_json:
        _print_row(store, done)
        return
    name = done.job.name
    click.echo(f"  hostler logs -f {name}\n  hostler status\n  hostler stop {name}", err=True)


def _print_row(store: Store, done: Submitted) -> None:
    from hostler.cli.terminal.named_rows import print_rows  # with all that reads rows

    print_rows(store, [done.key])
