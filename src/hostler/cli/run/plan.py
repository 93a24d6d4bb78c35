"""`hostler plan`: what a sweep file would do; nothing is written anywhere."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import click

from hostler import env
from hostler.backends.project_file import load_sweep
from hostler.cli import here
from hostler.cli.run import forecast, pricing
from hostler.cli.run.fleet_pick import chosen_launcher
from hostler.cli.terminal import output
from hostler.errors import MissingError
from hostler.fleet import preview
from hostler.fleet.preview import Outlook
from hostler.fleet.submit import code_mark, required_files
from hostler.fleet.sweep import as_stored, draft_sweep
from hostler.records.sweep import gpu_company
from hostler.spec.argv import build
from hostler.spec.inputs import inputs_of, with_paths
from hostler.spec.job import Job
from hostler.spec.project import Project
from hostler.train.fused.offer import offered

_PLAIN = re.compile(r"[\w@%+=:,./$-]+", re.ASCII)  # words that a shell takes as they are


def command(file: Path, on: str | None, store_url: str | None, as_json: bool) -> int:
    """Show how many runs a sweep file has, the first and last few, and which are new, done or running."""
    sweep_file = load_sweep(file, here.project(), commanded=False)
    job, together = offered(draft_sweep(sweep_file), sweep_file.project.root, sweep_file.together)
    url = here.store_url(store_url, sweep_file.project)
    store = here.open_at(url)
    job = as_stored(store, job)
    outlook = preview.look(store, job, code_mark(store, sweep_file.project, [job.file]))
    workers = chosen_launcher(store, sweep_file.project, url, on, job).prepared(store)
    outlook = outlook.on(store, workers.fleet)
    costs = pricing.outlay(store, workers, [outlook.job], outlook.open)
    price = costs.asked.price.worker
    line, missing = _command_line(outlook), _missing(sweep_file.project, job)
    company = gpu_company.of_sweep(store, job.name) if outlook.there and outlook.open else None
    if as_json:
        plan = forecast.as_json(outlook, workers.fleet, price)
        told = {"command": line, "missing": missing.message if missing else None}
        told |= {"company": company.line} if company else {}
        output.print_json({**plan, **told, "price": pricing.as_json(costs), "together": together})
    else:
        shown = [*forecast.lines(outlook, workers.fleet, price, together), *pricing.lines(costs)]
        chooses = (
            "" if _first(outlook) < outlook.job.count else "  (with the parameters that the search chooses)"
        )
        shown += [f"  run {_first(outlook)}: {line}{chooses}"] if line else []
        shown += [f"  {company.line}"] if company else []
        click.echo("\n".join(shown))
        forecast.say_notes(sweep_file.notes)
        if missing:
            click.echo(f"hostler: {missing.message}\n  → {missing.hint}", err=True)
    return 0


def _first(found: Outlook) -> int:
    """Index of the first run of the file; 0 where a search has chosen none yet."""
    runs = found.edit.kept or found.edit.new
    return runs.nth(0) if runs else 0


def _command_line(found: Outlook) -> str:
    """The command line of the file's first run, for a shell. Folders of the run are the variables that hold
    them; the parameters of a search that learns are chosen later."""
    job = found.job
    if not job.command:
        return ""
    index = _first(found)
    chosen = dict(job.params(index)) if index < job.count else {}
    values = with_paths(chosen, {one.key: f"<{one.shown}>" for one in inputs_of(chosen)})
    job = replace(job, command=job.command_of(index)) if index < job.count else job
    places = {
        "checkpoint_dir": f"${env.CHECKPOINT_DIR}",
        "output_dir": f"${env.OUTPUT_DIR}",
        "data_dir": f"${env.DATA}",
        "run_id": job.run_id(index) if index < job.count else "RUN",
        "params_file": f"${env.PARAMS}",
        "params_json": json.dumps(values, default=str),
    }
    built = build(job, values, places, resuming=False)
    variables = [f"{name}={_quoted(value)}" for name, value in built.env.items() if name not in job.env]
    return " ".join([*variables, *map(_quoted, built.argv)])


def _quoted(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else shlex.quote(word)


def _missing(project: Project, job: Job) -> MissingError | None:
    """A file that the job needs and that is not there."""
    try:
        required_files(project, job)
    except MissingError as error:
        return error
    return None
