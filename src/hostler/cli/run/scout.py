"""`hostler scout`: the first runs of a sweep on several fleets for some minutes; says which is cheapest."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from hostler import settings
from hostler.backends.project_file import load_sweep
from hostler.cli import here
from hostler.cli.machines import down
from hostler.cli.run import pricing
from hostler.cli.run.fleet_pick import fleet_names
from hostler.cli.run.wish import kept
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.errors import HostlerError, UsageError
from hostler.fleet import preview
from hostler.fleet.fleet_choice import completed, on_name
from hostler.fleet.launcher import Launcher, sweep_launcher
from hostler.fleet.scouting import Candidate, Scout, candidate
from hostler.fleet.secrets import check_secrets
from hostler.fleet.submit import code_mark
from hostler.fleet.sweep import as_stored, draft_sweep, submit_sweep
from hostler.frozen import dataclass
from hostler.records import project as projects
from hostler.records.sweep import measured_rates
from hostler.records.sweep.measured_rates import MeasuredRate, planned_steps
from hostler.simulate import outcome, times
from hostler.simulate.outcome import SimulationSummary
from hostler.simulate.study import StudyOptions, study
from hostler.spec.job import Job
from hostler.spec.units import counted, show_duration, show_money
from hostler.store import Store

HEAD = ("fleet", "machine", "price/h", "steps/s", "per 1000 steps", "per run", "hours", "sweep")


@dataclass(frozen=True)
class Line:
    """A candidate with what was measured and simulated of it."""

    fleet: str
    rate: MeasuredRate | None
    swept: SimulationSummary | None
    problem: str = ""


def command(
    file: Path,
    on: tuple[str, ...],
    span: str,
    steps: int | None,
    preempt: tuple[str, ...],
    yes: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Begin the first runs on each of several fleets, measure them for some minutes, and compare."""
    seconds = times.times(span, "--for").low
    if seconds <= 0:
        raise UsageError("--for 0: the time must be above 0", hint="for example --for 3m")
    given = load_sweep(file, here.project())
    job = draft_sweep(given)
    url = here.store_url(store_url, given.project)
    store = here.open_at(url)
    job, _ = kept(store, as_stored(store, job), None)
    check_secrets(job.secrets)
    found = preview.look(store, job, code_mark(store, given.project, [job.file]))
    names = fleet_names(on)
    launchers = [sweep_launcher(given.project, url, name, job.parallel) for name in names]
    _check(found.open, job, names)
    tried = [_candidate(one, store, job, seconds) for one in launchers]
    able = [on_name(one.name) for one in tried if not one.over]
    if not able:
        raise UsageError("no fleet is left to scout", hint="hostler down FLEET ends its workers")
    if not ask(f"Begin a run on each of {', '.join(able)} for {show_duration(seconds)}?", yes=yes):
        click.echo("hostler: nothing was started", err=True)
        return 1
    done = submit_sweep(store, given, job)
    scout = Scout(store, done.job, seconds, lambda one: _end(one, store_url), _say)
    scout.run(tried)
    learned = {one.name: _learn(store, done.job, one, steps) for one in tried if one.speed}
    options = StudyOptions(preempt=preempt)
    timing = projects.agreed(store, projects.timing_of(url))
    swept, notes = simulated(store, done.job, launchers, learned, found.open, options, timing)
    lines = [
        Line(on_name(one.name), learned.get(one.name), swept.get(one.name), one.problem) for one in tried
    ]
    best = cheapest(lines)
    then = shlex.join(["hostler", "sweep", str(file), "--on", best.fleet]) if best else ""
    if as_json:
        output.print_json(_json(done.job, lines, best, then, notes))
    else:
        click.echo("\n".join([*table(lines), *(f"  {note}" for note in notes), *_named(best, then)]))
    return 0 if best else 1


def _candidate(workers: Launcher, store: Store, job: Job, seconds: float) -> Candidate:
    """The fleet with its price, which is said; or with why it cannot be tried: the others are compared."""
    one = Candidate(workers)
    try:
        one = candidate(workers.prepared(store), store, job, seconds)
        costs = pricing.outlay(store, one.workers, [job], 1)
        click.echo("\n".join(pricing.lines(costs)), err=True)
        if not one.over:
            pricing.check(costs)
    except HostlerError as error:
        one.problem, one.over = str(error), True
    if one.problem:
        click.echo(f"  {on_name(one.name)} is left out: {one.problem}", err=True)
    return one


def _check(open_runs: int, job: Job, names: Sequence[str]) -> None:
    if not names:
        raise UsageError("--on names no fleet", hint="for example --on burst,tau")
    if job.search and not open_runs:
        open_runs = len(names)  # chosen by whoever takes them
    if open_runs < len(names):
        raise UsageError(
            f"{job.name} has {counted(open_runs, 'open run')} for {counted(len(names), 'fleet')}: each "
            "fleet is measured by a run of its own",
            hint="name fewer fleets, or give the file more runs",
        )


def _end(workers: Launcher, store_url: str | None) -> None:
    down.command(on_name(workers.fleet.name), False, store_url)


def _say(line: str) -> None:
    click.echo(f"hostler: {line}", err=True)


def _learn(store: Store, job: Job, one: Candidate, steps: int | None) -> MeasuredRate:
    """Keep a measurement in the store."""
    assert one.speed is not None
    fleet = completed(one.workers.engine, one.workers.fleet)
    steps = steps or planned_steps(job.params(0) if job.count else {})
    made = MeasuredRate(
        one.name,
        one.speed.rate,
        one.speed.warm,
        one.speed.span,
        steps,
        one.seats,
        one.workers.asked([job], 1).price.usual,
        str(fleet.options.get("machine") or ""),
        job.source.mark,
        round(time.time(), 3),
    )
    measured_rates.write(store, job.name, made)
    return made


def simulated(
    store: Store,
    job: Job,
    launchers: Sequence[Launcher],
    learned: Mapping[str, MeasuredRate],
    runs: int,
    options: StudyOptions,
    timing: settings.Timing,
) -> tuple[dict[str, SimulationSummary], tuple[str, ...]]:
    """The whole sweep on each fleet whose run is known, and notes; nothing where no run's length is."""
    known = [one for one in launchers if one.fleet.name in learned and learned[one.fleet.name].seconds]
    if not known or not runs:
        return {}, ("steps of a run are not known: --steps N tells them",) if runs else ()
    try:
        found = study(store, known, job, runs, options, timing, time.time())
    except UsageError as error:  # what was measured is shown all the same
        return {}, (str(error),)
    return {one.fleet: one for one in found.results()}, found.notes


def cheapest(lines: Sequence[Line]) -> Line | None:
    """The line of the fleet to take. By the simulated cost of the sweep, by the price of a step where the
    length of a run is not known, and by the rate where no price is. Pure."""
    swept = {one.swept.fleet: one for one in lines if one.swept}
    best = outcome.best([one.swept for one in lines if one.swept])
    if best is not None:
        return swept[best.fleet]
    rated = [one for one in lines if one.rate]
    priced = [one for one in rated if one.rate and one.rate.per_step is not None]
    return min(
        priced or rated,
        key=lambda one: (one.rate.per_step or 0.0, -one.rate.rate) if one.rate else (0.0, 0.0),
        default=None,
    )


def table(lines: Sequence[Line]) -> Iterator[str]:
    rows = [HEAD, *(_cells(one) for one in lines)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
    for row, one in zip(rows, [None, *lines], strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        said = f"  {one.problem}" if one and one.problem else ""
        yield f"  {'  '.join(cells)}{said}".rstrip()


def _cells(line: Line) -> tuple[str, ...]:
    one, swept = line.rate, line.swept
    if one is None:
        return (line.fleet, *[""] * (len(HEAD) - 1))
    step = None if one.per_step is None else 1000 * one.per_step
    hours = f"{swept.seconds.mean / 3600:.3g}" if swept and swept.finishes else "-"
    cost = show_money(swept.cost.mean) if swept and swept.cost and swept.finishes else "-"
    prices = (show_money(one.price), f"{one.rate:.4g}", show_money(step), show_money(one.per_run))
    return (line.fleet, one.machine or "-", *prices, hours, cost)


def _named(best: Line | None, then: str) -> Iterator[str]:
    if best is None:
        yield "none of them showed a step"
        return
    cost = best.swept.cost if best.swept else None
    said = f": {show_money(cost.mean)} for the sweep" if cost else ""
    yield f"cheapest: {best.fleet}{said}"
    yield f"  → {then}"


def _json(
    job: Job, lines: Sequence[Line], best: Line | None, then: str, notes: Sequence[str]
) -> dict[str, Any]:
    return {
        "sweep": job.name,
        "candidates": [
            {
                "fleet": one.fleet,
                "problem": one.problem or None,
                **({**asdict(one.rate), "seconds": one.rate.seconds} if one.rate else {}),
                **({"per_step": one.rate.per_step, "per_run": one.rate.per_run} if one.rate else {}),
                **({"swept": asdict(one.swept)} if one.swept else {}),
            }
            for one in lines
        ],
        "best": best.fleet if best else None,
        "next": then or None,
        "notes": list(notes),
    }
