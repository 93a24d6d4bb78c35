"""`hostler scout`: the first runs of a sweep on several fleets for some minutes; says which is cheapest."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any

import click

from hostler import settings
from hostler.backends.project_file import load_sweep
from hostler.cli import here
from hostler.cli.machines import down
from hostler.cli.run import pricing
from hostler.cli.run.fleet_pick import cheapest as least
from hostler.cli.run.fleet_pick import fleet_names
from hostler.cli.run.wish import kept
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.errors import HostlerError, UsageError
from hostler.fleet import machine_choice, preview
from hostler.fleet.fleet_choice import completed, on_name
from hostler.fleet.launcher import Launcher, sweep_launcher
from hostler.fleet.scouting import Scout, ScoutCandidate, candidate
from hostler.fleet.secrets import check_secrets
from hostler.fleet.submit import code_mark
from hostler.fleet.sweep import as_stored, draft_sweep, submit_sweep
from hostler.frozen import dataclass
from hostler.records import project as projects
from hostler.records.sweep import measured_rates, sweeps
from hostler.records.sweep.measured_rates import MeasuredRate, planned_steps
from hostler.simulate import outcome, times
from hostler.simulate.outcome import SimulationSummary
from hostler.simulate.rates import named_rates
from hostler.simulate.study import StudyOptions, study
from hostler.spec.job import Job
from hostler.spec.units import counted, show_duration, show_money
from hostler.store import Store

SAMPLE = 500  # runs whose steps are looked at, about
MACHINES = 6  # of a wish that are tried, the cheapest ones
HEAD = ("fleet", "machine", "price/h", "steps/s", "per 1000 steps", "per run", "hours", "sweep")


@dataclass(frozen=True)
class ScoutLine:
    """A candidate with what was measured and simulated of it."""

    fleet: str
    rate: MeasuredRate | None
    swept: SimulationSummary | None
    problem: str = ""


@dataclass(frozen=True)
class ScoutedWish:
    """A fleet as it was named, and what is tried of it: itself, or machines that it leaves open."""

    name: str
    machines: tuple[Launcher, ...]


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
    sweep_file = load_sweep(file, here.project())
    job = draft_sweep(sweep_file)
    url = here.store_url(store_url, sweep_file.project)
    store = here.open_at(url)
    job, _ = kept(store, as_stored(store, job), None)
    check_secrets(job.secrets)
    outlook = preview.look(store, job, code_mark(store, sweep_file.project, [job.file]))
    names = fleet_names(on)
    named = [sweep_launcher(sweep_file.project, url, name, job.parallel) for name in names]
    _check(outlook.open, job, names)
    wishes = _wishes(named, store, outlook.open or MACHINES * len(named))
    launchers = [each for one in wishes for each in one.machines]
    rates = list(_told_apart(preempt, wishes))
    named_rates(rates, [each.fleet.name for each in launchers])  # before anything is paid
    tried = [_candidate(one, store, job, seconds) for one in launchers]
    able = [on_name(one.name) for one in tried if not one.over]
    if not able:
        raise UsageError("no fleet is left to scout", hint="the lines above say why each is left out")
    if not ask(f"Begin a run on each of {', '.join(able)} for {show_duration(seconds)}?", yes=yes):
        click.echo("hostler: nothing was started", err=True)
        return 1
    done = submit_sweep(store, sweep_file, job)
    scout = Scout(store, done.job, seconds, lambda one: _end(one, store_url), _say)
    scout.run(tried)
    steps = steps or mean_steps(sweeps.load(store, job.name) if job.search else done.job)
    learned = {one.name: _learn(store, done.job, one, steps) for one in tried if one.speed}
    wide = _learn_wishes(store, done.job, wishes, learned)
    options = StudyOptions(preempt=tuple(rates))
    timing = projects.agreed(store, projects.timing_of(url))
    swept, notes = simulated(store, done.job, launchers, learned, outlook.open, options, timing)
    notes = (*notes, *_changed(tried))
    lines = [
        ScoutLine(on_name(one.name), learned.get(one.name), swept.get(one.name), one.problem) for one in tried
    ]
    best = cheapest(lines)
    fleet = wide.get(best.fleet, best.fleet) if best else ""
    then = shlex.join(["hostler", "sweep", str(file), "--on", fleet]) if best else ""
    if as_json:
        output.print_json(_json(done.job, lines, best, then, notes))
    else:
        click.echo("\n".join([*table(lines), *(f"  {note}" for note in notes), *_named(best, then)]))
    return 0 if best else 1


def _wishes(named: Sequence[Launcher], store: Store, runs: int) -> list[ScoutedWish]:
    """Of a fleet that leaves its machine open the cheapest ones, as far as there are runs for them."""
    room, wishes = runs - len(named), list[ScoutedWish]()
    for launcher in named:
        try:
            able = machine_choice.each_machine(launcher, store)
        except HostlerError:  # said where it is tried
            able = []
        count = min(len(able), MACHINES, 1 + room)
        if count < 2:
            wishes.append(ScoutedWish(launcher.fleet.name, (launcher,)))
            continue
        room -= count - 1
        if remaining := [each.fleet.name for each in able[count:]]:
            more = f" and {len(remaining) - 3} more" if len(remaining) > 3 else ""
            _say(
                f"left out, as {count} of {launcher.fleet.name} are cheaper: {', '.join(remaining[:3])}{more}"
            )
        wishes.append(ScoutedWish(launcher.fleet.name, tuple(able[:count])))
    return wishes


def _learn_wishes(
    store: Store, job: Job, wishes: Sequence[ScoutedWish], learned: Mapping[str, MeasuredRate]
) -> dict[str, str]:
    """Keep the rate of each wish: that of the cheapest of its machines, which its launches take first.
    Answers the wish of each machine, where they were compared."""
    learn_wishes: dict[str, str] = {}
    for wish in wishes:
        names = [machine.fleet.name for machine in wish.machines]
        rates = {name: learned[name] for name in names if name in learned}
        first = least(rates)
        if len(rates) > 1 and first is not None:
            measured_rates.write(store, job.name, replace(rates[first], fleet=wish.name))
            learn_wishes |= dict.fromkeys(names, wish.name)
    return learn_wishes


def _told_apart(preempt: Sequence[str], wishes: Sequence[ScoutedWish]) -> Iterator[str]:
    """Rates of preemption, those of a wish for each of its machines."""
    machines = {wish.name: [each.fleet.name for each in wish.machines] for wish in wishes}
    for text in preempt:
        fleet, is_one, what = text.rpartition("=")
        yield from [f"{name}={what}" for name in machines.get(fleet, [fleet])] if is_one else [text]


def _candidate(workers: Launcher, store: Store, job: Job, seconds: float) -> ScoutCandidate:
    """The fleet with its price, which is said; or with why it cannot be tried: the others are compared."""
    one = ScoutCandidate(workers)
    try:
        one = candidate(workers.prepared(store), store, job, seconds)
        costs = pricing.outlay(store, one.workers, [job], 1)
        if not one.over:
            pricing.check(costs)
            click.echo("\n".join(pricing.lines(costs)), err=True)
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


def _changed(tried: Sequence[ScoutCandidate]) -> Iterator[str]:
    """Rates that became others while they were measured."""
    for one in tried:
        if one.speed and one.speed.changed:
            share = f"{100 * one.speed.drift:.0f} % of that at the beginning"
            yield f"{on_name(one.name)}: its rate at the end was {share}; a longer --for tells which stays"


def mean_steps(job: Job) -> int | None:
    """Steps of a run, on average over the sweep where its runs differ; None where nobody knows. Pure."""
    each = [planned_steps(job.params(index)) for index in range(0, job.count, 1 + job.count // SAMPLE)]
    known = [steps for steps in each if steps]
    return round(mean(known)) if known and len(known) == len(each) else None


def _learn(store: Store, job: Job, one: ScoutCandidate, steps: int | None) -> MeasuredRate:
    """Keep a measurement in the store."""
    assert one.speed is not None
    fleet = completed(one.workers.engine, one.workers.fleet)
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
    """The whole sweep on each fleet whose run is known, and notes; nothing where no run's length is. Rates of
    preemption of the others do not matter."""
    known = [
        launcher
        for launcher in launchers
        if launcher.fleet.name in learned and learned[launcher.fleet.name].seconds
    ]
    names = {"", *(launcher.fleet.name for launcher in known)}
    options = replace(
        options, preempt=tuple(one for one in options.preempt if one.rpartition("=")[0] in names)
    )
    if not known or not runs:
        return {}, ("steps of a run are not known: --steps N tells them",) if runs else ()
    try:
        found = study(store, known, job, runs, options, timing, time.time())
    except UsageError as error:  # what was measured is shown all the same
        return {}, (str(error),)
    return {result.fleet: result for result in found.results()}, found.notes


def cheapest(lines: Sequence[ScoutLine]) -> ScoutLine | None:
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


def table(lines: Sequence[ScoutLine]) -> Iterator[str]:
    rows = [HEAD, *(_cells(line) for line in lines)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
    for row, one in zip(rows, [None, *lines], strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        text = f"  {one.problem}" if one and one.problem else ""
        yield f"  {'  '.join(cells)}{text}".rstrip()


def _cells(line: ScoutLine) -> tuple[str, ...]:
    rate, swept = line.rate, line.swept
    if rate is None:
        return (line.fleet, *[""] * (len(HEAD) - 1))
    step = None if rate.per_step is None else 1000 * rate.per_step
    hours = f"{swept.seconds.mean / 3600:.3g}" if swept and swept.finishes else "-"
    cost = show_money(swept.cost.mean) if swept and swept.cost and swept.finishes else "-"
    prices = (show_money(rate.price), f"{rate.rate:.4g}", show_money(step), show_money(rate.per_run))
    return (line.fleet, rate.machine or "-", *prices, hours, cost)


def _named(best: ScoutLine | None, then: str) -> Iterator[str]:
    if best is None:
        yield "none of them showed a step"
        return
    cost = best.swept.cost if best.swept else None
    text = f": {show_money(cost.mean)} for the sweep" if cost else ""
    yield f"cheapest: {best.fleet}{text}"
    yield f"  → {then}"


def _json(
    job: Job, lines: Sequence[ScoutLine], best: ScoutLine | None, then: str, notes: Sequence[str]
) -> dict[str, Any]:
    return {
        "sweep": job.name,
        "candidates": [
            {
                "fleet": line.fleet,
                "problem": line.problem or None,
                **({**asdict(line.rate), "seconds": line.rate.seconds} if line.rate else {}),
                **({"per_step": line.rate.per_step, "per_run": line.rate.per_run} if line.rate else {}),
                **({"swept": asdict(line.swept)} if line.swept else {}),
            }
            for line in lines
        ],
        "best": best.fleet if best else None,
        "next": then or None,
        "notes": list(notes),
    }
