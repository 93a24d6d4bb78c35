"""Summarises a project's workers in the queues of shared engines: how many run, how many wait, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hostler.backends.base import Backend, WorkerInfo
from hostler.backends.registry import BACKENDS, backend_of
from hostler.cli.run.forecast import params_line
from hostler.cli.terminal import output
from hostler.errors import HostlerError
from hostler.fleet.launcher import fleet_of
from hostler.records.launch.costs import SweepCost
from hostler.records.sweep.summary import Summary
from hostler.spec.project import Project
from hostler.spec.units import show_duration, show_money


def lines(project: Project) -> list[str]:
    """A line for each fleet with workers in a queue; an engine that does not answer is a line, too."""
    found, engines = [], dict[tuple[str, object, object, str | None], Backend]()
    for name, fleet in project.fleets.items():
        if fleet.backend not in BACKENDS:
            continue
        which = (fleet.backend, fleet.options.get("login"), fleet.options.get("context"), fleet.cache)
        engine = engines.get(which) or engines.setdefault(which, backend_of(fleet))  # asked once for all
        if not engine.capabilities.tells:
            continue
        try:
            listed = engine.list(fleet_of(project, name))
            workers = [one for one in listed if one.alive or one.detail.startswith("failed")]
        except HostlerError as error:
            found.append(f"{name}: {error.message}")
            continue
        if workers:
            found.append(f"{name}: {summed_up(workers)}")
    return found


def summed_up(workers: Sequence[WorkerInfo]) -> str:
    """`2 run, 30 wait: as many of its array run as `workers` allows (JobArrayTaskLimit)`."""
    counts = Counter[str]()
    for worker in workers:
        counts[worker.detail] += worker.count
    parts = [f"{n} {'wait' if said.startswith('waits') else 'run' if said == 'runs' else said}" +
             (f": {said.removeprefix('waits: ')}" if said.startswith("waits") else "")
             for said, n in sorted(counts.items())]  # fmt: skip
    return ", ".join(parts)


# Sweeps in one line each, for `status`.


def line(found: Summary) -> str:
    counts = ", ".join(f"{n} {state}" for state, n in found.counts.items()) or "none yet"
    counts += f", {found.unchosen} to be chosen" if found.unchosen else ""
    parts = [f"{found.name}: {found.runs:,} run{'s' * (found.runs != 1)}: {counts}"]
    if found.eta is not None:
        parts.append(f"about {show_duration(round(found.eta))} left")
    if found.best is not None and found.value is not None:
        parts.append(f"best {found.best.name} {found.metric}={output.number(found.value)}")
        parts[-1] += f" ({params_line(found.best.params, limit=60)})"
    if found.cost is not None:
        parts.append(spent(found.cost))
    if found.halted:
        parts.append(f"halted: {found.halted}")
    return "; ".join(parts)


def spent(cost: SweepCost) -> str:
    of = f" of {show_money(cost.budget)}" if cost.budget is not None else ""
    more = f", {show_money(cost.reserved)} more reserved" if cost.reserved else ""
    return f"{show_money(cost.spent)}{of} spent{more}"


def as_json(found: Summary) -> dict[str, Any]:
    best = found.best
    facts = {name: value for name, value in vars(found).items() if name not in ("best", "value", "cost")}
    shown = best and {"run": best.id, "name": best.name, "value": found.value, "params": dict(best.params)}
    return {**facts, "best": shown, "cost": found.cost and vars(found.cost)}
