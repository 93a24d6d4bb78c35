"""`hostler cost`: what runs, sweeps and fleets have cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from hostler import settings
from hostler.cli import here
from hostler.cli.terminal import output
from hostler.cli.terminal.output import Say
from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records.launch import costs
from hostler.records.launch.costs import SweepCost
from hostler.records.launch.settlement import Spend
from hostler.records.rows import Row, rows
from hostler.records.run import resolve
from hostler.records.sweep import sweeps
from hostler.spec.units import show_duration, show_money
from hostler.store import Store

MANY = 20  # runs that are listed, if one sweep is named


def command(
    names: tuple[str, ...], with_runs: bool, explain: bool, store_url: str | None, as_json: bool
) -> int:
    """Print the cost of runs, sweeps and fleets so far."""
    store = here.open_here(store_url)
    say = output.saying()
    found = costs.spends(store, settings.timing(), say)
    fleets = [name for name in names if _is_fleet(store, name, found)]
    jobs = {job.name: at for job, at in (resolve.find(store, name) for name in names if name not in fleets)}
    chosen = list(jobs) if names else sweeps.names(store)
    known = [one for name in chosen if (one := _sweep_cost(store, name, found, say))]
    shown = [
        one for one in found if not names or set(one.generation.sweeps) & set(chosen) or _is(one, fleets)
    ]
    runs = _runs(store, jobs, chosen, say, whole=with_runs or as_json)
    if as_json:
        output.print_json({**_json(known, shown, runs), **(_purposes(store, shown, say) if explain else {})})
        return 0
    for line in (*map(_sweep_line, known), *map(_fleet_line, shown), *map(_run_line, runs)):
        click.echo(line)
    if explain:
        from hostler.cli.look import cost_explained  # with the backends

        click.echo("\n".join(cost_explained.lines(cost_explained.explained(store, shown, say))))
        click.echo("\n".join(cost_explained.saving_lines(cost_explained.advice(store, shown, say))))
    if not known and not shown and not runs:
        click.echo(
            "hostler: no fleet here has a price; set `price:`, the cost of one worker for an hour", err=True
        )
    return 0


def _purposes(store: Store, shown: Sequence[Spend], say: Say) -> dict[str, Any]:
    from hostler.cli.look import cost_explained  # with the backends

    found = cost_explained.explained(store, shown, say)
    advice = cost_explained.advice(store, shown, say)
    return {
        "explained": {one.name: cost_explained.as_json(one) for one in found},
        "savings": {name: [vars(one) for one in changes] for name, changes in advice.items()},
    }


def _sweep_cost(store: Store, name: str, found: Sequence[Spend], say: Say) -> SweepCost | None:
    try:
        return costs.of_sweep(store, name, sweeps.load_spec(store, name)[0].budget.cost, found)
    except MissingError:  # being submitted, or deleted, right now
        return None
    except (DamagedError, NewerFormatError) as error:
        say(f"{name} is left out: {error}")
        return None


def _is_fleet(store: Store, name: str, found: Sequence[Spend]) -> bool:
    """Whether the name is a fleet or one of its launches, and not a sweep."""
    return any(_is(one, [name]) for one in found) and name.partition("/")[0] not in sweeps.names(store)


def _is(one: Spend, names: Sequence[str]) -> bool:
    return bool({one.generation.fleet, one.generation.name} & set(names))


def _runs(
    store: Store, named: dict[str, int | None], chosen: Sequence[str], say: Say, *, whole: bool
) -> list[Row]:
    """Runs with a price, of the sweeps that are shown; few, or all if asked."""
    if not named and not whole:
        return []
    found = [row for row in rows(store, chosen, touched=True, say=say) if row.cost is not None]
    found = [row for row in found if named.get(row.sweep) in (None, row.index)]
    return found if whole or len(found) <= MANY else []


def _sweep_line(one: SweepCost) -> str:
    parts = [f"{one.name}: {show_money(one.spent)} spent"]
    parts += [f"{show_money(one.reserved)} more reserved"] if one.reserved else []
    if one.budget is not None:
        more = one.counted > 1.01 * one.spent
        parts += [f"counted as {show_money(one.counted)} (what machines may have cost)"] if more else []
        parts.append(f"budget {show_money(one.budget)}, {show_money(one.left)} left")
    return ", ".join(parts)


def _fleet_line(one: Spend) -> str:
    gen = one.generation
    if gen.by_hand:
        return by_hand_line(one)
    idle = max(0.0, one.cost - one.used)
    said = f"{gen.name}: {show_money(one.cost)} for {show_duration(round(one.hours * 3600))} of workers at "
    said += f"{show_money(gen.price)} an hour (runs {show_money(one.used)}, idle {show_money(idle)})"
    return f"{said}; {'over' if one.over else f'{one.working} of {gen.workers} workers are there'}"


def by_hand_line(one: Spend) -> str:
    """The line of a machine for hand work; for `status` too."""
    gen, lasted = one.generation, show_duration(round(one.hours * 3600))
    said = f"{gen.name}: {show_money(one.cost)} for {lasted} of a machine for hand work at "
    end = "over" if one.over else f"hostler down {gen.fleet} removes it"
    return f"{said}{show_money(gen.price)} an hour; {end}"


def _run_line(row: Row) -> str:
    return f"  {row.name}: {show_money(row.cost)} ({row.state})"


def _json(known: Sequence[SweepCost], shown: Sequence[Spend], runs: Sequence[Row]) -> dict[str, Any]:
    return {
        "sweeps": [vars(one) for one in known],
        "fleets": [
            {
                "fleet": one.generation.fleet,
                "generation": one.generation.number,
                "sweeps": list(one.generation.sweeps),
                "workers": one.generation.workers,
                "price": one.generation.price,
                "deadline": one.generation.deadline,
                "reserved": dict(one.generation.reserved),
                "worker_hours": round(one.hours, 6),
                "cost": round(one.cost, 6),
                "runs": round(one.used, 6),
                "idle": round(max(0.0, one.cost - one.used), 6),
                "over": one.over,
                "by_hand": one.generation.by_hand,
            }
            for one in shown
        ],
        "runs": [{"run": row.id, "name": row.name, "state": row.state, "cost": row.cost} for row in runs],
    }
