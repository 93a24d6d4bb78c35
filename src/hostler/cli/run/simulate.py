"""`hostler simulate`: what a sweep would cost and how long it would take, before anything is spent."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Any

import click

from hostler.backends.project_file import load_sweep
from hostler.cli import here
from hostler.cli.extras import needs
from hostler.cli.run import simulated
from hostler.cli.terminal import output
from hostler.errors import UsageError
from hostler.fleet import preview
from hostler.fleet.launcher import sweep_launcher
from hostler.fleet.sweep import draft_sweep
from hostler.records import project
from hostler.simulate import outcome, stock, times, trace
from hostler.simulate.outcome import Summary
from hostler.simulate.study import Study, Wishes, study
from hostler.spec.units import show_duration


def command(
    file: Path,
    on: tuple[str, ...],
    by: str,
    plot: str | None,
    whole: bool,
    store_url: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Estimate a sweep's cost and time, at given or remembered rates of preemption."""
    if plot is not None:
        _check_plot(plot)
    wishes = _wishes(**given)
    found = _study(file, on, store_url, wishes, whole=whole or wishes.trace is not None)
    results = found.results(_tell)
    chosen = outcome.best(results, by=by)
    then = _next(file, found, chosen)
    if plot:
        _draw(found, results, chosen, plot)
    if as_json:
        output.print_json(simulated.as_json(found, results, chosen, then))
    else:
        click.echo("\n".join(simulated.lines(found, results, chosen, then, by)))
    return 0 if chosen is not None else 1


def _study(file: Path, on: tuple[str, ...], store_url: str | None, wishes: Wishes, *, whole: bool) -> Study:
    given = load_sweep(file, here.project(), commanded=False)
    job = draft_sweep(given)
    url = here.store_url(store_url, given.project)
    store = here.open_at(url)
    seen = preview.look(store, job, "")
    named = list(dict.fromkeys(name for one in on for name in one.split(",") if name))
    names: list[str | None] = [*named] or [None]
    launchers = [sweep_launcher(given.project, url, name, job.parallel) for name in names]
    timing = project.agreed(store, project.timing_of(url))
    return study(store, launchers, job, seen.runs if whole else seen.open, wishes, timing, time.time())


def _wishes(
    preempt: tuple[str, ...],
    history: bool,
    trace_file: Path | None,
    stockout: tuple[str, ...],
    run_time: str | None,
    like: tuple[str, ...],
    checkpoint: str | None,
    save: str | None,
    boot: str | None,
    notice: str | None,
    seeds: int | None,
) -> Wishes:
    if trace_file and (preempt or history or stockout):
        raise UsageError("--trace cannot be combined with --preempt, --history or --stockout")
    if preempt and history:
        raise UsageError("--preempt and --history cannot be combined: both give the rate")
    return Wishes(
        preempt,
        history,
        trace.read(trace_file) if trace_file else None,
        stock.stockouts(stockout),
        times.times(run_time, "--run-time") if run_time is not None else None,
        like,
        times.intervals(checkpoint) if checkpoint is not None else (),
        times.times(save, "--save").mean if save is not None else None,
        times.times(boot, "--boot") if boot is not None else None,
        times.times(notice, "--notice").mean if notice is not None else None,
        seeds,
    )


def _next(file: Path, found: Study, chosen: Summary | None) -> str:
    """The command that submits the chosen plan."""
    if chosen is None:
        return ""
    words = ["hostler", "sweep", str(file), "--on", "local" if chosen.fleet == "here" else chosen.fleet]
    said = shlex.join(words)
    if chosen.every != found.job.checkpoint.every and len(found.intervals) > 1:
        said += (
            f"   (with `checkpoint: {{every: {show_duration(chosen.every, exact=True)}}}` in hostler.yaml)"
        )
    return said


def _tell(what: str) -> None:
    """Show the progress at a terminal."""
    if sys.stderr.isatty():
        click.echo(f"hostler: {what} …", err=True)


def _check_plot(plot: str) -> None:
    """Check that the plot can be drawn before minutes are spent."""
    with needs("analysis"):
        from hostler.analysis.plots.save import check

        check(Path(plot), "--plot")


def _draw(found: Study, results: list[Summary], chosen: Summary | None, plot: str) -> None:
    with needs("analysis"):
        from hostler.analysis.plots.save import save
        from hostler.simulate.chart import chart

        path = save(chart(found.job.name, results, chosen), plot)
    click.echo(f"hostler: {path}", err=True)
