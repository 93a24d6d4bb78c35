"""`hostler sweep`: submit a sweep file, or what is new in it, and start workers for it."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from hostler.cli import forecast, here, output
from hostler.cli.ask import ask
from hostler.cli.launch import Launcher, check_secrets, sweep_launcher
from hostler.fleet import outlook, twins
from hostler.fleet.outlook import Outlook
from hostler.fleet.submit import code_mark
from hostler.fleet.sweep import Swept, draft_sweep, submit_sweep
from hostler.spec.sweepfile import load_sweep
from hostler.store import Store


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--on", metavar="FLEET", help="Where (default: hostler.yaml's `fleet`, else this machine).")
@click.option(
    "--no-start", is_flag=True, help="Submit everything, start nothing; prints the worker's command."
)
@click.option("--reuse", is_flag=True, help="Take results of equal runs that finished in other sweeps.")
@click.option("-n", "-d", "--dry-run", is_flag=True, help="Show what would be done; write and start nothing.")
@here.yes_option
@here.store_option
@here.json_option
def command(
    file: Path,
    on: str | None,
    no_start: bool,
    reuse: bool,
    dry_run: bool,
    yes: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Run every configuration of a sweep file; the same file again submits what is new in it.

    \b
    hostler plan FILE          what it would do
    hostler status NAME        how far it is
    hostler best NAME          its best run
    """
    given = load_sweep(file, here.project())
    url = here.store_url(store_url, given.project)
    job = draft_sweep(given, file.absolute().parent)
    workers = sweep_launcher(given.project, url, on, job.parallel)
    store = here.open_at(url)
    found = outlook.look(store, job, code_mark(store, given.project))
    if dry_run:
        return _show(found, workers, as_json)
    check_secrets(job.secrets)
    click.echo("\n".join(forecast.lines(found, workers.fleet)), err=True)
    if not ask("Submit?", yes=yes):
        click.echo("hostler: nothing was submitted", err=True)
        return 1
    done = submit_sweep(store, given, job)
    if found.twins and (reuse or (not yes and ask("Take the results of the others?", yes=False))):
        twins.take_over(store, done.job, found.twins)
    _start(store, workers, done, no_start=no_start)
    if as_json:
        output.print_json({**forecast.as_json(found, workers.fleet), "version": done.version})
    return 0


def _show(found: Outlook, workers: Launcher, as_json: bool) -> int:
    plan = workers.plan([found.job.name])
    if as_json:
        commands = [shlex.join(words) for words in plan.commands]
        output.print_json({**forecast.as_json(found, workers.fleet), "commands": commands})
    else:
        click.echo("\n".join([*forecast.lines(found, workers.fleet), plan.text]))
    return 0


def _start(store: Store, workers: Launcher, done: Swept, *, no_start: bool) -> None:
    name = done.job.name
    for note in done.notes:
        click.echo(f"hostler: {note}", err=True)
    if no_start:
        click.echo(f"hostler: {name} is submitted; to work on it, anywhere that reaches the store:", err=True)
        click.echo(shlex.join(["hostler", "worker", store.url, "--sweep", name]), err=True)
        return
    workers.start([name])
    click.echo(f"hostler: {name}\n  hostler status --watch {name}\n  hostler best {name}", err=True)
