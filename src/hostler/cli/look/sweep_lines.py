"""Sweeps in a line each: runs by state, time left, the best, cost; and what to type where one is stuck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from hostler import settings
from hostler.cli.terminal import output, screen
from hostler.cli.terminal.table import is_terminal
from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records import layout
from hostler.records.sweep import summary, sweeps
from hostler.records.sweep.summary import Summary
from hostler.spec.states import QUEUED, STOPPED
from hostler.spec.units import counted, show_duration, show_money, show_number
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.cli.terminal.output import Say
    from hostler.records.launch.costs import SweepCost
    from hostler.records.launch.settlement import Spend
    from hostler.spec.job import Job


def summaries(
    store: Store,
    chosen: list[str],
    spends: list[Spend],
    say: Say,
    read: Mapping[str, Job] = MappingProxyType({}),
) -> list[Summary]:
    """Summaries of sweeps that are not wholly in the trash. `read`: specs that have been read already."""
    found = [one for name in chosen if (one := _summary(store, name, say, read.get(name)))]
    return [_with_cost(store, one, spends, say) for one in found if one.runs or one.method]


def spends(store: Store, say: Say) -> list[Spend]:
    """Spends of all launches with a price; none where no fleet has had a launch."""
    if not any(store.list(layout.FLEETS, deep=False)):
        return []
    from hostler.records.launch import costs  # most stores are used by this machine alone

    return costs.spends(store, settings.timing(), say)


def has_line(one: Summary) -> bool:
    """Whether a sweep gets a line: a single run is its row, unless it costs."""
    return one.runs != 1 or one.cost is not None


def print_lines(store: Store, found: list[Summary], say: Say, *, hint: bool = True) -> bool:
    """Print a line per sweep; whether nobody works on one of them."""
    queued = [one.name for one in found if hint and one.counts.get(QUEUED) and not one.halted]
    left = _left(store, queued, say) if queued else {}
    for one in found:
        click.echo(_folded(_line(one)))
        if one.halted:
            click.echo(f"  → {_way_out(store, one.name)}", err=True)
        if one.unlogged:
            click.echo(f"  → {one.unlogged}", err=True)
        if one.name in left:
            click.echo(f"  → nobody works on it: {left[one.name]}", err=True)
    return bool(left)


def as_json(found: Summary) -> dict[str, Any]:
    best = found.best
    facts = {name: value for name, value in vars(found).items() if name not in ("best", "value", "cost")}
    ranked = best.judged._asdict() if best and best.judged else {}
    shown = best and {"run": best.id, "name": best.name, **ranked, "params": dict(best.params)}
    return {**facts, "best": shown, "cost": found.cost and vars(found.cost)}


def _summary(store: Store, name: str, say: Say, job: Job | None) -> Summary | None:
    try:
        return summary.of_sweep(store, name, say, job)
    except MissingError:  # being submitted, or deleted, right now
        return None
    except (DamagedError, NewerFormatError) as error:
        say(f"{name} is left out: {error}")
        return None


def _with_cost(store: Store, one: Summary, spends: list[Spend], say: Say) -> Summary:
    if one.budget is None and not spends:
        return one
    from hostler.records.launch import costs  # only where a launch or a budget costs something

    try:
        return replace(one, cost=costs.of_sweep(store, one.name, one.budget, spends))
    except (DamagedError, NewerFormatError) as error:
        say(f"no costs of {one.name} are shown: {error}")
        return one


def _folded(line: str) -> str:
    """A line as it is in a pipe; on a narrow terminal broken between its parts."""
    if not is_terminal() or screen.width(line) <= (room := screen.size().columns):
        return line
    first, *rest = line.split("; ")
    shown = [first]
    for part in rest:
        if screen.width(f"{shown[-1]}; {part}") <= room:
            shown[-1] += f"; {part}"
        else:
            shown.append(f"  {part}")
    return "\n".join(line for part in shown for line in screen.wrapped(part, room, "    "))


def _way_out(store: Store, name: str) -> str:
    from hostler.cli.terminal import halt_hints  # with what acts on runs: only for sweeps that are halted

    return halt_hints.way_out(store, name, sweeps.halted(store, name) or {})


def _left(store: Store, names: list[str], say: Say) -> dict[str, str]:
    """sweep → the command that starts a worker, of those that nobody works on."""
    from hostler.cli.terminal import hints  # with what starts workers: only for runs that wait

    return dict.fromkeys(hints.unserved(store, names, say), hints.worker_command(store))


def _line(found: Summary) -> str:
    counts = found.states or "none yet"
    counts += f", {found.unchosen} to be chosen" if found.unchosen else ""
    parts = [f"{found.name}: {counted(found.runs, 'run')}: {counts}"]
    if found.eta is not None:
        parts.append(f"about {show_duration(round(found.eta))} left")
    if found.best is not None and found.value is not None:
        which = found.best.judged.shown if found.best.judged else ""
        mark = f" {STOPPED}" * (found.best.state == STOPPED)
        parts.append(f"best {found.best.name} {found.metric}={show_number(found.value)} ({which}){mark}")
        parts[-1] += f" ({output.params_line(found.best.params, limit=60)})"
    if found.cost is not None:
        parts.append(_spent(found.cost))
    if found.halted:
        parts.append(f"halted: {found.halted}")
    return "; ".join(parts)


def _spent(cost: SweepCost) -> str:
    of = f" of {show_money(cost.budget)}" if cost.budget is not None else ""
    more = f", {show_money(cost.reserved)} more reserved" if cost.reserved else ""
    return f"{show_money(cost.spent)}{of} spent{more}"
