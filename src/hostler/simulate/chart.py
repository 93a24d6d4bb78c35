"""A comparison as a chart: time against cost, with the interval of each. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hostler.analysis.plots.chart import PALETTE, Axis, Chart, Mark, Panel, Points, Polyline
from hostler.simulate.outcome import Interval, SimulationSummary
from hostler.spec.units import show_duration


def chart(sweep: str, found: Sequence[SimulationSummary], chosen: SimulationSummary | None) -> Chart:
    """Chart time against cost, or against the interval between checkpoints if no price is known."""
    priced = [summary for summary in found if summary.cost is not None]
    fleets = list(dict.fromkeys(summary.fleet for summary in found))
    marks: list[Mark] = []
    for simulation_summary in priced or found:
        marks += _marks(
            simulation_summary,
            PALETTE[fleets.index(simulation_summary.fleet) % len(PALETTE)],
            is_best=simulation_summary is chosen,
        )
    y = Axis("cost") if priced else Axis("seconds between checkpoints", log=True)
    remaining = len(found) - len(priced) if priced else 0
    note = f"nine of ten simulations lie between the ends ({found[0].seeds} each)"
    note += f"; {remaining} without a price are not shown" if remaining else ""
    return Chart(f"Simulated time and cost of {sweep}", [Panel(marks, Axis("hours"), y)], note=note)


def _marks(one: SimulationSummary, colour: str, *, is_best: bool) -> list[Mark]:
    hours = Interval(one.seconds.mean / 3600, one.seconds.low / 3600, one.seconds.high / 3600)
    cost = one.cost or Interval(one.every, one.every, one.every)
    name = f"{one.fleet}, checkpoint {show_duration(one.every)}{' (best)' if is_best else ''}"
    return [
        Polyline([hours.low, hours.high], [cost.mean, cost.mean], name, colour, legend=False, opacity=0.6),
        Polyline([hours.mean, hours.mean], [cost.low, cost.high], name, colour, legend=False, opacity=0.6),
        Points([hours.mean], [cost.mean], name, colour, texts=[name], size=12 if is_best else 8),
    ]
