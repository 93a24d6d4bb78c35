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
    spends = costs.spends(store, settings.timing(), say)
    fleets = [name for name in names if _is_fleet(store, name, spends)]
    jobs = {job.name: at for job, at in (resolve.find(store, name) for name in names if name not in fleets)}
    chosen = list(jobs) if names else sweeps.names(store)
    known = [cost for name in chosen if (cost := _sweep_cost(store, name, spends, say))]
    shown = [
        spend
        for spend in spends
        if not names or set(spend.generation.sweeps) & set(chosen) or _is(spend, fleets)
    ]
    runs = _runs(store, jobs, chosen, say, whole=with_runs or as_json)
    if as_json:
        purposes = _purposes(store, shown, chosen, say) if explain else {}
        output.print_json({**_json(known, shown, runs), **purposes})
        return 0
    for line in (*map(_sweep_line, known), *map(_fleet_line, shown), *map(_run_line, runs)):
        click.echo(line)
    if explain:
        from hostler.cli.look import cost_explained  # with the backends

        parts = cost_explained.lines(cost_explained.explained(store, shown, say))
        changes = cost_explained.saving_lines(cost_explained.advice(store, shown, say))
        for line in (*parts, *changes, *cost_explained.company(store, chosen, say).values()):
            click.echo(line)
    if not known and not shown and not runs:
        click.echo(
            "hostler: no fleet here has a price; set `price:`, the cost of one worker for an hour", err=True
        )
    return 0


def _purposes(store: Store, shown: Sequence[Spend], chosen: Sequence[str], say: Say) -> dict[str, Any]:
    from hostler.cli.look import cost_explained  # with the backends

    explaineds = cost_explained.explained(store, shown, say)
    advice = cost_explained.advice(store, shown, say)
    return {
        "explained": {explained.name: cost_explained.as_json(explained) for explained in explaineds},
        "savings": {name: [vars(change) for change in changes] for name, changes in advice.items()},
        "company": cost_explained.company(store, chosen, say),
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
    return any(_is(spend, [name]) for spend in found) and name.partition("/")[0] not in sweeps.names(store)


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
    text = f"{gen.name}: {show_money(one.cost)} for {show_duration(round(one.hours * 3600))} of workers at "
    text += f"{show_money(gen.price)} an hour (runs {show_money(one.used)}, idle {show_money(idle)})"
    return f"{text}; {'over' if one.over else f'{one.working} of {gen.workers} workers are there'}"


def by_hand_line(one: Spend) -> str:
    """The line of a machine for hand work; for `status` too."""
    gen, lasted = one.generation, show_duration(round(one.hours * 3600))
    text = f"{gen.name}: {show_money(one.cost)} for {lasted} of a machine for hand work at "
    end = "over" if one.over else f"hostler down {gen.fleet} removes it"
    return f"{text}{show_money(gen.price)} an hour; {end}"


def _run_line(row: Row) -> str:
    return f"  {row.name}: {show_money(row.cost)} ({row.state})"


def _json(known: Sequence[SweepCost], shown: Sequence[Spend], runs: Sequence[Row]) -> dict[str, Any]:
    return {
        "sweeps": [vars(cost) for cost in known],
        "fleets": [
            {
                "fleet": spend.generation.fleet,
                "generation": spend.generation.number,
                "sweeps": list(spend.generation.sweeps),
                "workers": spend.generation.workers,
                "price": spend.generation.price,
                "deadline": spend.generation.deadline,
                "reserved": dict(spend.generation.reserved),
                "worker_hours": round(spend.hours, 6),
                "cost": round(spend.cost, 6),
                "runs": round(spend.used, 6),
                "idle": round(max(0.0, spend.cost - spend.used), 6),
                "over": spend.over,
                "by_hand": spend.generation.by_hand,
            }
            for spend in shown
        ],
        "runs": [{"run": row.id, "name": row.name, "state": row.state, "cost": row.cost} for row in runs],
    }
