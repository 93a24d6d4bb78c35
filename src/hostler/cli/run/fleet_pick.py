"""The fleet of a launch where several are named: the cheapest, by what scouts have measured of this sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hostler.errors import UsageError
from hostler.fleet import machine_choice
from hostler.fleet.launcher import Launcher, sweep_launcher
from hostler.records.sweep import measured_rates
from hostler.records.sweep.measured_rates import MeasuredRate
from hostler.spec.job import Job
from hostler.spec.project import Project
from hostler.spec.units import show_money
from hostler.store import Store


def fleet_names(on: Sequence[str]) -> list[str]:
    """`A,B` and A B as names, each once."""
    return list(dict.fromkeys(name.strip() for one in on for name in one.split(",") if name.strip()))


def chosen_launcher(
    store: Store, project: Project, url: str, on: str | None, job: Job, *, script: Path | None = None
) -> Launcher:
    """The launcher of the fleet that is named, or of the cheapest of several; which one is said."""
    names = fleet_names([on or ""])
    if len(names) < 2:
        workers = sweep_launcher(project, url, on, job.parallel, script)
        return machine_choice.as_learned(workers, store, [job])
    launchers = [
        machine_choice.as_learned(sweep_launcher(project, url, name, job.parallel, script), store, [job])
        for name in names
    ]
    own = {
        name: launcher.fleet.name for name, launcher in zip(names, launchers, strict=True)
    }  # local is this machine
    rates = {name: measured_rates.read(store, job.name, own[name]) for name in names}
    name = cheapest({name: one for name, one in rates.items() if one})
    if name is None:
        raise UsageError(
            f"none of {', '.join(names)} was scouted with {job.name}: the cheapest is not known",
            hint=f"hostler scout FILE --on {','.join(names)} measures them; or name one fleet",
        )
    one = rates[name]
    assert one is not None
    text = f"{show_money(1000 * one.per_step)} for 1000 steps" if one.per_step else f"{one.rate:.4g} steps/s"
    unknown = [other for other, rate in rates.items() if rate is None]
    left = f"; {', '.join(unknown)} was not scouted" if unknown else ""
    click.echo(f"hostler: on {name}, the cheapest as scouted ({text}){left}", err=True)
    return next(each for each, given in zip(launchers, names, strict=True) if given == name)


def cheapest(rates: dict[str, MeasuredRate]) -> str | None:
    """The fleet with the cheapest runs, or steps where their number is not known; the fastest where none has
    a price. Pure."""
    priced = {name: rate for name, rate in rates.items() if rate.per_step is not None}

    def order(name: str) -> tuple[float, float]:
        one = rates[name]
        whole = all(each.per_run is not None for each in priced.values())
        cost = (one.per_run if whole else one.per_step) or 0.0
        return cost, -one.rate * one.seats

    return min(priced or rates, key=order, default=None)
