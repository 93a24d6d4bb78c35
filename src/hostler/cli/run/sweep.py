"""`hostler sweep`: submit a sweep file, or what is new in it, and start workers for it."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hostler.backends import registry
from hostler.backends.base import Backend, Launch
from hostler.backends.project_file import load_sweep
from hostler.cli import here
from hostler.cli.run import forecast, pricing
from hostler.cli.run.fleet_pick import chosen_launcher
from hostler.cli.run.pricing import Outlay
from hostler.cli.run.wish import SweepTarget, capped, kept, sweep_target
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask, ask_text, asked
from hostler.errors import UsageError
from hostler.fleet import again, equal_runs, preview, submit
from hostler.fleet.init_from import begin_from
from hostler.fleet.launcher import Launcher, is_served
from hostler.fleet.preview import Outlook
from hostler.fleet.secrets import check_secrets, check_told
from hostler.fleet.submit import code_mark
from hostler.fleet.sweep import Swept, as_stored, draft_sweep, submit_sweep
from hostler.frozen import dataclass
from hostler.records.launch import serving
from hostler.records.rows import Row, rows
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.series.logs import LogReader
from hostler.records.sweep import concurrency, sweeps, target
from hostler.spec.files.sweepfile import SweepFile
from hostler.spec.job import Budget, Job
from hostler.spec.names import slug
from hostler.spec.project import Fleet, Project
from hostler.spec.states import DONE, QUEUED, RUNNING
from hostler.spec.units import counted, show_duration
from hostler.store import Store
from hostler.store.registry import open_store
from hostler.train.fused.offer import offered

if TYPE_CHECKING:
    from hostler.analysis.live_folder import LiveFolder
    from hostler.cli.run.targeted import Targeted

TRIAL = 60.0  # seconds a trial may take to show a sign of life


@dataclass(frozen=True)
class _SweepChanges:
    """The parts of an existing sweep to do again, or to give up."""

    overwrite: bool
    resubmit: bool
    rerun: bool
    reuse: bool
    yes: bool


@dataclass(frozen=True)
class _Words:
    """The words typed about where the runs go, and from what they begin."""

    on: str | None
    script: Path | None
    init_from: str | None
    wish: SweepTarget | None
    one_by_one: bool
    overwrite: bool
    starts: bool


@dataclass(frozen=True)
class _Draft:
    """A sweep as it would be submitted, to whom, and for how much."""

    store: Store
    file: SweepFile
    job: Job
    outlook: Outlook
    workers: Launcher
    costs: Outlay
    together: str
    aim: Targeted | None

    @property
    def price(self) -> float | None:
        return self.costs.asked.price.worker


def command(
    file: Path,
    on: str | None,
    script: Path | None,
    resubmit: bool,
    rerun: str | None,
    overwrite: bool,
    reuse: bool,
    first: bool,
    no_start: bool,
    all_or_none: bool,
    one_by_one: bool,
    waits: bool,
    dry_run: bool,
    init_from: str | None,
    yes: bool,
    store_url: str | None,
    as_json: bool,
    **target_words: Any,
) -> int:
    """Run every configuration of a sweep file; the same file again submits what is new in it."""
    words = _Words(on, script, init_from, sweep_target(**target_words), one_by_one, overwrite, not no_start)
    draft = _drafted(file, store_url, words, settle=not dry_run)
    store, job, outlook = draft.store, draft.job, draft.outlook
    if dry_run:
        return _show(draft, as_json)
    check_secrets(job.secrets)
    check_told(job.notify.to)
    named = on is not None or script is not None or draft.aim is not None
    _check_money(store, outlook, draft.costs, no_start=no_start, always=named, again=resubmit)
    _announce(draft, priced=not no_start)
    forecast.say_notes(draft.file.notes)
    reuse = reuse or _takes_results(outlook, yes=yes)
    changes = _SweepChanges(overwrite, resubmit, rerun is not None, reuse, yes)
    if not _agreed(outlook, changes):
        click.echo("hostler: nothing was submitted", err=True)
        return 1
    if first and not report_trial(try_first(draft.file.project, job, 0, TRIAL), job):
        return 1
    anew = overwrite or bool(outlook.replaced)
    done = submit_sweep(
        store, draft.file, job, anew=anew, failed=bool(outlook.replaced) or (overwrite and yes)
    )
    reopened = _settle(store, done, outlook, changes)
    if draft.aim:
        target.write(store, done.job.name, draft.aim.agreed(store))
    workers = replace(draft.workers, take_back=lambda question: all_or_none or (not yes and asked(question)))
    _start(store, workers, done, outlook, reopened, no_start=no_start, always=named)
    code = _wait(store, done.job, draft.file.results, as_json) if waits else 0
    if as_json:
        _print_result(draft, version=done.version, reopened=reopened)
    return code


def _drafted(file: Path, store_url: str | None, words: _Words, *, settle: bool) -> _Draft:
    on, script, wish = words.on, words.script, words.wish
    sweep_file = load_sweep(file, here.project(), program=_program(script) if script else None)
    url = here.store_url(store_url, sweep_file.project)
    limit = 1 if words.one_by_one else sweep_file.together
    job, together = offered(draft_sweep(sweep_file), sweep_file.project.root, limit)
    store = here.open_at(url)
    job = capped(as_stored(store, job), wish)
    job, sweep_file = _begun(words.init_from, job, sweep_file, store)
    aim = None
    if wish is None:  # a fleet that won't do is refused before the store is asked
        workers = chosen_launcher(store, sweep_file.project, url, on, job, script=script)
        workers = workers.prepared(store) if words.starts else workers
    job, wish = (job, wish) if words.overwrite else kept(store, job, wish)
    outlook = preview.look(store, job, code_mark(store, sweep_file.project, [job.file]), anew=words.overwrite)
    if wish is not None:
        from hostler.cli.run.targeted import targeted  # brings the simulator

        apart = script or not words.starts
        aim = targeted(store, sweep_file.project, url, on, job, outlook.open, wish, apart=apart)
        workers = aim.workers.prepared(store)
    outlook = outlook.on(store, workers.fleet)
    costs = pricing.outlay(store, workers, [outlook.job], outlook.open, settle=settle)
    return _Draft(store, sweep_file, job, outlook, workers, costs, together, aim)


def _begun(init_from: str | None, job: Job, given: SweepFile, store: Store) -> tuple[Job, SweepFile]:
    """The sweep whose runs begin from what another run has left."""
    if not init_from:
        return job, given
    job, project = begin_from(init_from, job, given.project, store)
    return job, replace(given, project=project)


def _takes_results(found: Outlook, *, yes: bool) -> bool:
    asks = bool(found.twins) and not yes
    return asks and ask("Take the results of those that finished in other sweeps?", yes=False)


def _program(script: Path) -> tuple[str, ...] | None:
    """The program that a submit script trains with: the command of a project that names none."""
    from hostler.spec.formats import submit_script  # few sweeps have one

    try:
        found = submit_script.find(script.read_text())
    except (OSError, UnicodeDecodeError):
        return None  # whoever launches says it
    return found.words() if found else None


def _announce(draft: _Draft, *, priced: bool) -> None:
    """Say what will be submitted, and its price if workers are started."""
    click.echo("\n".join(_lines(draft, priced=priced)), err=True)


def _lines(draft: _Draft, *, priced: bool = True) -> list[str]:
    lines = [*forecast.lines(draft.outlook, draft.workers.fleet, draft.price, draft.together)]
    lines += pricing.lines(draft.costs) if priced else ()
    return lines + [f"  {line}" for line in (draft.aim.lines if draft.aim else ())]


def _print_result(draft: _Draft, **done: object) -> None:
    plan = forecast.as_json(draft.outlook, draft.workers.fleet, draft.price)
    output.print_json({**plan, "together": draft.together, "price": pricing.as_json(draft.costs), **done})


def _show(draft: _Draft, as_json: bool) -> int:
    outlook, workers = draft.outlook, draft.workers
    hidden = workers.hidden([outlook.job])
    plan = workers.plan([outlook.job.name], outlook.open, funded=draft.costs.funded, hidden=hidden)
    if as_json:
        commands = [shlex.join(words) for words in plan.commands]
        _print_result(draft, target=list(draft.aim.lines if draft.aim else ()), commands=commands)
    else:
        click.echo("\n".join([*_lines(draft), plan.text]))
    return 0


def _check_money(
    store: Store, found: Outlook, costs: Outlay, *, no_start: bool, always: bool, again: bool
) -> None:
    """Before anything is submitted: money for the workers that will be started, if any will."""
    wanted = found.open or found.job.chooses or (again and found.again)
    if not costs.refused or no_start or not wanted:
        return
    if always or not serving.look(store).serves(found.job.name):
        raise costs.refused


def _agreed(found: Outlook, changes: _SweepChanges) -> bool:
    if found.replaced:
        return ask(f"{found.job.name}: {forecast.nothing_succeeded(found)}. Replace them?", yes=changes.yes)
    if changes.overwrite and found.there and not (changes.yes and found.failed is not None):
        question = f"The sweep {found.job.name} goes to the trash. Type its name to agree"
        if changes.yes:
            raise UsageError("-o asks for the sweep's name, which -y does not answer", hint="leave -y out")
        return ask_text(question, "", yes=False) in (found.job.name, found.job.title)
    return ask("Submit?", yes=changes.yes)


def _settle(store: Store, done: Swept, found: Outlook, changes: _SweepChanges) -> int:
    """After the round is written: what is taken over, bounded, lifted, done again. Returns how many are."""
    job = done.job
    if changes.reuse and found.twins:
        taken = equal_runs.take_over(store, job, found.twins)
        click.echo(f"hostler: {counted(taken, 'result')} taken over", err=True)
    touched = [
        row
        for row in rows(store, [job.name], touched=True, say=output.saying())
        if row.index in done.edit.kept
    ]
    if job.parallel is not None:
        concurrency.enrol(store, job, [(row.id, row.claim) for row in touched if row.state == RUNNING])
    if changes.overwrite or found.replaced:
        sweeps.lift(store, job.name)
    again.lift_if_allowed(store, job)
    chosen = [row for row in touched if changes.resubmit and again.is_undone(row)]
    chosen += [row for row in touched if changes.rerun and again.is_changed(row, job.source.mark)]
    return again.reopen(store, job, chosen)


def _start(
    store: Store,
    workers: Launcher,
    done: Swept,
    found: Outlook,
    reopened: int,
    *,
    no_start: bool,
    always: bool,
) -> None:
    name = done.job.name
    for note in done.notes:
        click.echo(f"hostler: {note}", err=True)
    halt = sweeps.halted(store, name)
    if halt:
        from hostler.cli.terminal import halt_hints  # hardly ever

        click.echo(f"hostler: {halt_hints.line(store, name, halt)}", err=True)
    if no_start:
        click.echo(f"hostler: {name} is submitted; to work on it, anywhere that reaches the store:", err=True)
        click.echo(shlex.join(["hostler", "worker", store.url, "--sweep", name]))
        return
    waiting = done.edit.new or reopened or found.states.get(QUEUED) or done.job.chooses
    if not waiting:
        click.echo(f"hostler: {name}: nothing to do", err=True)
        return
    there = [found.states.get(state, 0) for state in (QUEUED, RUNNING)]
    wanted = len(done.edit.new) + reopened + sum(there)
    if done.job.chooses:  # its runs are chosen by who takes them
        wanted = max(wanted, done.job.budget.runs or workers.fleet.workers)
    if always or workers.engine.capabilities.shared or not is_served(store, name):
        workers.start_missing([name], wanted, new=not found.there, jobs=[done.job])
    click.echo(f"hostler: {name}\n  hostler status --watch {name}\n  hostler best {name}", err=True)


def _live_folder(store: Store, job: Job, results: str) -> LiveFolder:
    from hostler.analysis.live_folder import LiveFolder  # brings numpy

    return LiveFolder(store, job, Path(results), say=output.saying())


def _wait(store: Store, job: Job, results: str, quiet: bool) -> int:
    """Wait for all runs; the folder that another tool's file names for them is kept up to date meanwhile."""
    from hostler.cli.look import wait  # while the workers that were just started import what they need

    say = output.saying()
    live = _live_folder(store, job, results) if results else None

    def look() -> list[Row]:
        return live.update() if live else rows(store, [job.name], say=say)

    found, over = wait.wait(store, look, None, quiet=quiet, also=[job.name])
    return wait.exit_code(store, found, None, over, [job.name])


# `--try`: the first run of a sweep, here, until it shows that it works; in a store of its own.
#
# It goes the way every run goes (snapshot, packages, worker), so that what fails here would have failed
# everywhere. It is over at its first sign of life, or when it ends, or when the time is up.


LOOK = 0.2
PATIENCE = 20.0  # seconds until its worker is killed
TAIL = 15  # lines of a failed trial's output


@dataclass(frozen=True)
class ProbeRun:
    row: Row
    seconds: float
    output: str


def try_first(project: Project, job: Job, index: int, limit: float) -> ProbeRun:
    """Carry out run `index` until it logs a metric, ends, or `limit` seconds have passed."""
    alone = replace(job, name="try", rounds=(), runs=(job.params(index),), parallel=None, retries=0)
    alone = replace(alone, command=job.command_of(index), budget=Budget())
    with tempfile.TemporaryDirectory(prefix="hostler-try-") as folder:
        store = open_store(str(Path(folder) / "store"))
        done = submit.submit(store, project, alone)
        engine, fleet = registry.this_machine(), Fleet(slug(f"try {folder}"), registry.HERE, slots=1)
        launch = Launch(store.url, (done.job.name,), sys.executable, project.cache)
        engine.start(engine.plan(fleet, launch))
        try:
            return _watch(store, done.key, limit)
        finally:
            control.kill(store, done.key, by="hostler sweep --try")
            _end(engine, fleet)


def report_trial(trial: ProbeRun, job: Job) -> bool:
    """Print how it went; returns whether the sweep may be submitted."""
    problem = _problem(trial, job)
    if problem:
        click.echo("\n".join(f"  | {line}" for line in trial.output.splitlines()[-TAIL:]), err=True)
        click.echo(f"hostler: {problem}\n  → nothing was submitted; fix it and submit again", err=True)
        return False
    took, text = show_duration(round(trial.seconds, 1)), output.metrics_text(trial.row)
    click.echo(f"hostler: the first run works ({took}{': ' + text if text else ''})", err=True)
    return True


def _problem(trial: ProbeRun, job: Job) -> str:
    row = trial.row
    if row.state not in (DONE, QUEUED, RUNNING):
        return f"the first run failed: {(row.failure or {}).get('message', row.state)}"
    logged = [name for name in row.metrics if not name.startswith("system/")]
    if job.metric and row.state == DONE and job.metric not in logged:
        there = f"it logs {', '.join(logged)}" if logged else "it logs none"
        return f"the first run is done and has not logged the metric {job.metric}: {there}"
    return ""


def _watch(store: Store, key: RunKey, limit: float) -> ProbeRun:
    begun = time.monotonic()
    while True:
        row = rows(store, [key.sweep])[0]
        spent = time.monotonic() - begun
        alive = any(not name.startswith("system/") for name in row.metrics)
        if row.state not in (QUEUED, RUNNING) or alive or spent >= limit:
            text = b"".join(piece.data for piece in LogReader(store, key.run).read())
            return ProbeRun(row, spent, text.decode("utf-8", "replace"))
        time.sleep(LOOK)


def _end(engine: Backend, fleet: Fleet) -> None:
    """Its worker leaves, for nothing is left; the store goes only after it."""
    end = time.monotonic() + PATIENCE
    while engine.list(fleet):
        if time.monotonic() > end:
            engine.stop(fleet, now=True)
        time.sleep(0.05)
