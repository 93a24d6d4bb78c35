"""Sweeps in one line each, for `status`."""

from __future__ import annotations

from typing import Any

from hostler.cli.run.forecast import params_line
from hostler.cli.terminal import output
from hostler.records.launch.costs import SweepCost
from hostler.records.sweep.summary import Summary
from hostler.spec.units import show_duration, show_money


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
