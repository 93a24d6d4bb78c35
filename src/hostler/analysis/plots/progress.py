"""Progress of a search: the best so far over its rounds, its cost, and its completion."""

from __future__ import annotations

import math
from collections import Counter
from itertools import accumulate

from hostler.analysis.plots.chart import (
    DIM,
    PALETTE,
    STATES,
    Axis,
    Bars,
    Chart,
    Panel,
    Points,
    Polyline,
    empty,
)
from hostler.analysis.plots.look import Look
from hostler.analysis.plots.source import ROUND, SWEEP, PlotRun, PlotSource, groups
from hostler.records.rows import Row
from hostler.records.run.log import RUNG
from hostler.records.run.state import UNREADABLE
from hostler.spec.states import ALL, PAUSED
from hostler.spec.units import counted, show_number


def trend(source: PlotSource, look: Look) -> Chart:
    """Runs in the order they were chosen, the best until then, and where rounds began."""
    title = f"The best {source.label} over the search"
    runs = sorted(source.sound, key=lambda run: (run.row.sweep, run.row.index))
    if not runs:
        return empty(title, source.why_none)
    marks: list[Polyline | Points] = []
    for n, (name, part) in enumerate(groups(runs, SWEEP)):
        colour = PALETTE[n % len(PALETTE)]
        places = [float(i + 1) for i in range(len(part))]
        so_far = list(accumulate((run.value for run in part), max if source.sign > 0 else min))
        texts = [f"{run.row.name}, round {run.round}" for run in part]
        marks.append(Points(places, [r.value for r in part], "runs", DIM, texts=texts, size=5, legend=n == 0))
        marks.append(Polyline(places, so_far, f"best of {name}", colour, 2.4, steps=True))
        marks += _rounds(part, so_far, colour)
    remaining = len(source.valued) - len(runs)
    note = f"left out: {counted(remaining, 'failed or diverged run')}" if remaining else ""
    return Chart(title, [Panel(marks, look.axis_x("runs"), look.axis_y(source.metric))], note=note)


def _rounds(part: list[PlotRun], so_far: list[float], colour: str) -> list[Points]:
    last = {run.round: n for n, run in enumerate(part)}
    if len(last) < 2:
        return []
    texts = [f"end of round {number}: {show_number(so_far[n])}" for number, n in last.items()]
    places = [float(n + 1) for n in last.values()]
    return [
        Points(places, [so_far[n] for n in last.values()], "end of a round", colour, texts=texts, size=10)
    ]


def cost(source: PlotSource, look: Look) -> Chart:
    """Plot each run's cost against its result: money if known, else time."""
    money = any(math.isfinite(run.cost) and run.cost > 0 for run in source.runs)
    longest = max((run.row.seconds or 0.0 for run in source.runs), default=0.0)
    axis, unit = ("cost", 1.0) if money else _unit(longest)
    title = f"{source.label} against {axis}"
    runs = [run for run in source.valued if _spent(run, money, unit) is not None]
    if not runs:
        return empty(title, "no finished runs yet" if source.valued else source.why_none)
    sound = [run for run in source.sound if _spent(run, money, unit) is not None]
    spent = [_spent(run, money, unit) or 0.0 for run in sound]
    series: list[Polyline | Points] = []
    for n, (name, part) in enumerate(groups(runs, source.check(look.by or SWEEP))):
        own = [_spent(run, money, unit) or 0.0 for run in part]
        texts = [run.row.name for run in part]
        series.append(Points(own, [r.value for r in part], name, PALETTE[n % len(PALETTE)], texts=texts))
    series.append(_front(spent, [run.value for run in sound], source.sign))
    return Chart(title, [Panel(series, look.axis_x(axis), look.axis_y(source.metric))])


def _unit(longest: float) -> tuple[str, float]:
    """(the unit in which such times are read, its seconds)."""
    return ("hours", 3600.0) if longest >= 5400 else ("minutes", 60.0) if longest >= 90 else ("seconds", 1.0)


def _spent(run: PlotRun, money: bool, unit: float) -> float | None:
    if money:
        return run.cost if math.isfinite(run.cost) else None
    return run.row.seconds / unit if run.row.seconds else None


def _front(spent: list[float], values: list[float], sign: int) -> Polyline:
    """Runs that no cheaper one beats."""
    best, x, y = -math.inf, [], []
    for cheap, value in sorted(zip(spent, values, strict=True)):
        if sign * value > best:
            best = sign * value
            x.append(cheap)
            y.append(value)
    return Polyline(x, y, "no cheaper run is better", DIM, 1.4, steps=True)


def completion(source: PlotSource, look: Look) -> Chart:
    """Plot the number of runs in each state, by sweep or by `--by`."""
    key = source.check(look.by) if look.by else _natural(source)
    title = f"Runs by {key} and state"
    if not source.runs:
        return empty(title, "no runs")
    found = groups(source.runs, key)[::-1]
    labels = [name for name, _ in found]
    bars = []
    for state in [UNREADABLE, *reversed(_ORDER)]:
        counts = [Counter(_kind(run.row) for run in part)[state] for _, part in found]
        if any(counts):
            texts = [str(n) if n else "" for n in counts]
            bars.append(Bars(labels, counts, state, STATES[state], texts))
    done = sum(run.row.state == "done" for run in source.runs)
    return Chart(title, [Panel(bars[::-1], Axis("runs"))], note=f"{done} of {len(source.runs)} done")


PARKED = "paused at a rung"  # by a pruner: nobody is waited for, unlike where a person has paused it
_ORDER = [kind for state in ALL for kind in ((state, PARKED) if state == PAUSED else (state,))]


def _kind(row: Row) -> str:
    return PARKED if row.state == PAUSED and row.paused_by == RUNG else row.state


def _natural(source: PlotSource) -> str:
    rounds = {run.round for run in source.runs}
    one = len({run.row.sweep for run in source.runs}) == 1
    return ROUND if one and len(rounds) > 1 else SWEEP
