"""`hostler simulate`: what a sweep would cost and how long it would take, before anything is spent."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from hostler.backends.project_file import load_sweep
from hostler.cli import here
from hostler.cli.extras import needs
from hostler.cli.terminal import output
from hostler.errors import UsageError
from hostler.fleet import machine_choice, preview
from hostler.fleet.launcher import sweep_launcher
from hostler.fleet.sweep import as_stored, draft_sweep
from hostler.records import project
from hostler.simulate import outcome, stock, times, trace
from hostler.simulate.outcome import Interval, SimulationSummary
from hostler.simulate.study import Study, StudyOptions, study
from hostler.spec.units import counted, show_duration, show_money


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
        output.print_json(study_json(found, results, chosen, then))
    else:
        click.echo("\n".join(result_lines(found, results, chosen, then, by)))
    return 0 if chosen is not None else 1


def _study(
    file: Path, on: tuple[str, ...], store_url: str | None, wishes: StudyOptions, *, whole: bool
) -> Study:
    sweep_file = load_sweep(file, here.project(), commanded=False)
    job = draft_sweep(sweep_file)
    url = here.store_url(store_url, sweep_file.project)
    store = here.open_at(url)
    job = as_stored(store, job)
    outlook = preview.look(store, job, "")
    named = list(dict.fromkeys(name for one in on for name in one.split(",") if name))
    names: list[str | None] = [*named] or [None]
    launchers = [
        machine_choice.as_learned(sweep_launcher(sweep_file.project, url, name, job.parallel), store, [job])
        for name in names
    ]
    timing = project.agreed(store, project.timing_of(url))
    return study(store, launchers, job, outlook.runs if whole else outlook.open, wishes, timing, time.time())


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
) -> StudyOptions:
    if trace_file and (preempt or history or stockout):
        raise UsageError("--trace cannot be combined with --preempt, --history or --stockout")
    if preempt and history:
        raise UsageError("--preempt and --history cannot be combined: both give the rate")
    return StudyOptions(
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


def _next(file: Path, found: Study, chosen: SimulationSummary | None) -> str:
    """The command that submits the chosen plan."""
    if chosen is None:
        return ""
    words = ["hostler", "sweep", str(file), "--on", "local" if chosen.fleet == "here" else chosen.fleet]
    text = shlex.join(words)
    if chosen.every != found.job.checkpoint.every and len(found.intervals) > 1:
        text += (
            f"   (with `checkpoint: {{every: {show_duration(chosen.every, exact=True)}}}` in hostler.yaml)"
        )
    return text


def _tell(what: str) -> None:
    """Show the progress at a terminal."""
    if sys.stderr.isatty():
        click.echo(f"hostler: {what} …", err=True)


def _check_plot(plot: str) -> None:
    """Check that the plot can be drawn before minutes are spent."""
    with needs("analysis"):
        from hostler.analysis.plots.save import check

        check(Path(plot), "--plot")


def _draw(
    found: Study, results: list[SimulationSummary], chosen: SimulationSummary | None, plot: str
) -> None:
    with needs("analysis"):
        from hostler.analysis.plots.save import save
        from hostler.simulate.chart import chart

        path = save(chart(found.job.name, results, chosen), plot)
    click.echo(f"hostler: {path}", err=True)


# Results of simulations, as a table for people and as JSON.


HEAD = ("fleet", "checkpoint", "time", "(5-95 %)", "cost", "(5-95 %)", "preempted", "repeated", "done")


def result_lines(
    found: Study, results: Sequence[SimulationSummary], chosen: SimulationSummary | None, then: str, by: str
) -> Iterator[str]:
    count = counted(found.runs, "run")
    yield f"{found.job.name}: {count}; each simulated {counted(found.seeds, 'time')}"
    rows = [HEAD, *(_cells(result) for result in results)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield from (f"  {note}" for note in found.notes)
    yield from (f"  {trouble}" for trouble in troubles(results))
    yield from _best(results, chosen, then, by)


def troubles(results: Sequence[SimulationSummary]) -> Iterator[str]:
    """Reasons why not all runs finish, one line each."""
    for result in results:
        name = f"{result.fleet}, checkpoint {show_duration(result.every)}"
        if result.endless:
            yield f"{name}: the sweep never ends: machines are taken before a run reaches its next checkpoint"
        elif not result.begins:
            yield f"{name}: the launch never starts: {result.given_up}"
        elif result.given_up:
            yield f"{name}: in {result.abandoned} of {result.seeds} the launch is given up: {result.given_up}"
        elif result.failed >= 0.5:
            lost = counted(round(result.failed), "run")
            yield f"{name}: {lost} fail, lost too often before a checkpoint; save more often"
        elif result.capped:
            often = f"in {result.capped} of {result.seeds}"
            yield f"{name}: time or money runs out before the work is done {often}: {_left(result)}"
        elif result.left >= 0.5:
            yield f"{name}: {_left(result)}: no machine is left for them"


def _left(one: SimulationSummary) -> str:
    count = f"{one.left:.0f}"
    return "1 run is left" if count == "1" else f"{count} runs are left"


def _best(
    results: Sequence[SimulationSummary], chosen: SimulationSummary | None, then: str, by: str
) -> Iterator[str]:
    if chosen is None:
        yield "none of them finishes all runs"
        return
    cheap = by == "cost" and chosen.cost is not None
    word = "" if len(results) == 1 else "cheapest: " if cheap else "fastest: "
    cost = f" for {_money(chosen.cost)}" if chosen.cost else ""
    name = f"{chosen.fleet}, a checkpoint every {show_duration(chosen.every)}"
    yield f"{word}{name}: {_time(chosen.seconds)}{cost}"
    yield f"  → {then}"


def _cells(one: SimulationSummary) -> tuple[str, ...]:
    never = "never ends" if one.endless else "" if one.begins else "never begins"
    cost = ("-", "") if one.cost is None or never else (show_money(one.cost.mean), _between(one.cost))
    time = (never, "") if never else (_short(one.seconds.mean), _times(one.seconds))
    losses = f"{one.losses:.3g}" if one.losses < 1000 else f"{one.losses:,.0f}"
    done = f"{one.done:.0f}" if one.finishes else f"{one.done:.0f} of {one.runs}"
    repeated = show_duration(round(one.repeated)) if one.repeated else "0"
    return (one.fleet, show_duration(one.every), *time, *cost, losses, repeated, done)


def study_json(
    found: Study, results: Sequence[SimulationSummary], chosen: SimulationSummary | None, then: str
) -> dict[str, Any]:
    return {
        "sweep": found.job.name,
        "runs": found.runs,
        "seeds": found.seeds,
        "results": [{**asdict(result), "finishes": result.finishes} for result in results],
        "best": {"fleet": chosen.fleet, "every": chosen.every} if chosen else None,
        "next": then or None,
        "notes": [*found.notes, *troubles(results)],
    }


def _time(span: Interval) -> str:
    return f"{_short(span.mean)} ({_times(span)})"


def _money(span: Interval) -> str:
    return f"{show_money(span.mean)} ({_between(span)})"


def _between(span: Interval) -> str:
    return f"{show_money(span.low)}-{show_money(span.high)}"


def _times(span: Interval) -> str:
    return f"{_short(span.low)}-{_short(span.high)}"


def _short(seconds: float) -> str:
    return show_duration(round(seconds)) if seconds >= 10 else show_duration(seconds)
