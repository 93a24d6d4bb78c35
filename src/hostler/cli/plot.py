"""`hostler plot`: plots of runs into a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from hostler.cli import here
from hostler.cli.extras import needs, telling
from hostler.errors import UsageError
from hostler.records.run import resolve
from hostler.store import Store

KINDS = [
    "results",
    "best",
    "grid",
    "parallel",
    "importance",
    "slices",
    "contour",
    "trend",
    "archive",
    "cost",
    "completion",
]


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("names", nargs=-1, metavar="[SWEEP…]")
@click.option(
    "-o", "--output", metavar="FILE", help="PNG, SVG, PDF or HTML by its ending (default: KIND.png)."
)
@click.option("--metric", metavar="NAME", help="This metric (default: the sweep's).")
@click.option(
    "--goal", type=click.Choice(["max", "min"]), help="More is better, or less (default: the sweep's)."
)
@click.option("--best", is_flag=True, help="Each run's best value, not its last.")
@click.option("--by", metavar="KEY", help="Group by this: section, round, sweep, state, or a parameter.")
@click.option("--row", metavar="KEY", help="Of grid: a row of panels for each value.")
@click.option("--column", metavar="KEY", help="Of grid: a column of panels for each value.")
@click.option("--legend", metavar="KEY", help="A line for each value; runs of equal value are averaged.")
@click.option("--keys", metavar="A,B", default="", help="Which parameters: of slices, contour, parallel.")
@click.option("--x", metavar="KEY", default="step", help="Along a curve: step, time, or another metric.")
@click.option("--y-range", metavar="LOW,HIGH", default="", help="Of the y axis; one of them may be empty.")
@click.option("--log-x", is_flag=True)
@click.option("--log-y", is_flag=True)
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="Of archive: how many."
)
@here.store_option
def command(
    kind: str, names: tuple[str, ...], output: str | None, store_url: str | None, **given: Any
) -> int:
    """A plot of runs: of these sweeps, or of all.

    \b
    results     the metric by section or parameter    trend       the best so far, over rounds
    best        the best run's curve                  archive     curves of the best of all sweeps
    grid        panels of averaged curves             cost        what runs took and reached
    parallel    an axis for each parameter            completion  runs by state
    importance  which parameters matter               slices, contour   along one, over two
    """
    store = here.open_here(store_url)
    sweeps, (low, high) = _sweeps(store, names), _range(given.pop("y_range"))
    options = {**given, "keys": tuple(filter(None, given["keys"].split(","))), "low": low, "high": high}
    with needs("analysis"), telling():
        from hostler.analysis.plots import draw, save

        chart = draw(store.url, kind, sweeps, **options)
        try:
            path = save(chart, Path(output or f"{kind}.png"))
        except OSError as error:
            raise UsageError(f"{output} cannot be written: {error.strerror}", hint="-o FILE") from None
    click.echo(path)
    if chart.note:
        click.echo(f"  {chart.note}", err=True)
    return 0


def _sweeps(store: Store, names: tuple[str, ...]) -> list[str] | None:
    return [resolve.sweep(store, name) for name in names] or None


def _range(words: str) -> tuple[float | None, float | None]:
    if not words:
        return None, None
    parts = words.split(",")
    try:
        low, high = (float(part) if part.strip() else None for part in parts)
        if not all(part is None or math.isfinite(part) for part in (low, high)):
            raise ValueError(words)
    except ValueError:
        raise UsageError(
            f"--y-range {words}: two numbers with a comma between them", hint="like 0.5,1"
        ) from None
    return low, high
